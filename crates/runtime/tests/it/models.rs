//! Which model answers, what it reads and what it may cost.

use serde_json::{Value, json};
use toolyard_egress::Door;
use toolyard_models::scripted::{Reply, Seen, Upstream};
use toolyard_models::{ModelRecord, Price, ProviderKind, ProviderSettings, Providers, Registry};
use toolyard_protocol::event::{Event, HistoryCompacted, ModelReplied, RunFinished};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{ErrorCode, FileId, Hash, RunId};
use toolyard_runtime::{Fresh, PostMessage};
use toolyard_store::blobs::{self, FileRow};

use crate::yard::{Yard, config};

const PRICE: Price = Price { input: 2.0, output: 10.0, cached: None, cache_write: None };

pub(crate) fn said(text: &str) -> Reply {
    Reply::stream().text(text).finish("stop").usage(100, 10).done()
}

pub(crate) fn described(id: &str, provider: &str) -> ModelRecord {
    let model = format!("{provider}-large");
    ModelRecord { id: id.to_owned(), price: Some(PRICE), ..ModelRecord::bare(provider, &model) }
}

/// Two vendors, each with one described model; `first` falls back on `second`.
pub(crate) fn registry(first: &Upstream, second: &Upstream) -> Registry {
    let settings = [("one", first), ("two", second)].map(|(name, upstream)| ProviderSettings {
        name: name.to_owned(),
        kind: ProviderKind::OpenAi,
        base_url: Some(upstream.base_url()),
        api_key: None,
    });
    let providers = Providers::open(settings.into(), &Door::operator().unwrap()).unwrap();
    let first = ModelRecord { fallback: vec!["second".to_owned()], ..described("first", "one") };
    Registry::new(providers, vec![first, described("second", "two")]).unwrap()
}

pub(crate) fn first_model(extra: Value) -> Value {
    let mut config = config(json!([]), extra);
    config["model"] = json!({"name": "first"});
    config
}

async fn posted(yard: &Yard, text: &str, model: &str) -> Result<RunId, toolyard_protocol::ApiError> {
    let post = PostMessage {
        trace: None,
        by: yard.secret(),
        space: yard.space.clone(),
        sender: Some(yard.ada.clone()),
        speaker: Speaker::User,
        parts: vec![Part::text(text)],
        metadata: None,
        trigger_agents: true,
        model: Some(model.to_owned()),
        categories: None,
        client_tools: Default::default(),
    };
    match yard.rt.post_message(post, None).await? {
        Fresh::Done(posted) => Ok(posted.runs[0].run.clone().unwrap()),
        Fresh::Before { .. } => panic!("no key was given"),
    }
}

pub(crate) fn replies(events: &[Event]) -> Vec<&ModelReplied> {
    events.iter().filter_map(|e| if let Event::ModelReplied(e) = e { Some(e) } else { None }).collect()
}

pub(crate) fn finished(events: &[Event]) -> &RunFinished {
    match events.last() {
        Some(Event::RunFinished(end)) => end,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn compacted(events: &[Event]) -> Vec<&HistoryCompacted> {
    events.iter().filter_map(|e| if let Event::HistoryCompacted(e) = e { Some(e) } else { None }).collect()
}

pub(crate) fn all_text(seen: &Seen) -> String {
    seen.body["messages"].to_string()
}

/// Row C6: the request says which model, the agent's own is the default.
#[tokio::test]
async fn c6_a_request_chooses_its_model() {
    let (one, two) =
        (Upstream::serve([said("one")]).await.unwrap(), Upstream::serve([said("two")]).await.unwrap());
    let yard = Yard::with_registry(first_model(json!({})), registry(&one, &two)).await;
    let run = yard.say("hello").await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "one");
    let run = posted(&yard, "and you?", "second").await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "two");
    assert_eq!(two.requests()[0].body["model"], "two-large", "the vendor gets its own name");
}

/// Row C4: a model that nobody knows is named in the refusal, and nothing is stored.
#[tokio::test]
async fn c4_an_unknown_model_is_refused_by_its_name() {
    let (one, two) = (Upstream::serve([]).await.unwrap(), Upstream::serve([]).await.unwrap());
    let yard = Yard::with_registry(first_model(json!({})), registry(&one, &two)).await;
    let refused = posted(&yard, "hello", "gpt-none").await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ModelNotFound);
    assert!(refused.message.contains("gpt-none") && refused.message.contains("first"), "{}", refused.message);
    assert!(yard.messages().await.is_empty());
}

/// The next model answers when the first is out of order, and the log says so.
#[tokio::test]
async fn a_model_that_is_out_of_order_is_replaced_by_the_next() {
    let one = Upstream::answer(|_: &Seen| Reply::refusal(503, "overloaded")).await.unwrap();
    let two = Upstream::serve([said("I am here")]).await.unwrap();
    let yard = Yard::with_registry(first_model(json!({})), registry(&one, &two)).await;
    let run = yard.say("hello").await;
    yard.until(&run, RunStatus::Completed).await;
    let events = yard.events(&run).await;
    assert_eq!(replies(&events)[0].model.shown().unwrap(), "two/two-large");
    assert_eq!(yard.answer().await, "I am here");
}

/// A request that the vendor calls wrong is wrong for the next one too, and a
/// reply that was heard in part is never mixed with another's.
#[tokio::test]
async fn what_was_refused_or_heard_in_part_goes_to_nobody_else() {
    for (reply, code) in [
        (Reply::refusal(400, "no such field"), ErrorCode::ModelRequestRefused),
        (Reply::stream().text("half an ans").cut_after(200), ErrorCode::ModelStreamCut),
    ] {
        let one = Upstream::serve([reply]).await.unwrap();
        let two = Upstream::serve([said("never")]).await.unwrap();
        let yard = Yard::with_registry(first_model(json!({})), registry(&one, &two)).await;
        let run = yard.say("hello").await;
        yard.until(&run, RunStatus::Failed).await;
        assert_eq!(finished(&yard.events(&run).await).error, Some(code));
        assert!(two.requests().is_empty());
    }
}

/// Tokens and cost are in the log, per step and for the run.
#[tokio::test]
async fn usage_and_cost_are_logged_per_step_and_run() {
    let tool = json!([{"name": "now", "execution": {"mode": "static", "output": {"time": "12:00"}}}]);
    let call = Reply::stream().call(0, "c1", "now", "{}").finish("tool_calls").usage(50, 5).done();
    let one = Upstream::serve([call, said("noon")]).await.unwrap();
    let two = Upstream::serve([]).await.unwrap();
    let mut agent = config(tool, json!({}));
    agent["model"] = json!({"name": "first"});
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = yard.say("what time is it?").await;
    yard.until(&run, RunStatus::Completed).await;
    let events = yard.events(&run).await;
    // 50 × 2 + 5 × 10, then 100 × 2 + 10 × 10 millionths of a dollar.
    assert_eq!(replies(&events).iter().map(|r| r.cost).collect::<Vec<_>>(), [Some(150), Some(300)]);
    let end = finished(&events);
    assert_eq!((end.usage.input_tokens, end.usage.output_tokens, end.cost), (150, 15, Some(450)));
}

/// A budget stops the run before its next model call, with a reason of its own.
#[tokio::test]
async fn a_run_stops_at_its_budget() {
    for budget in [json!({"maxTokens": 60}), json!({"maxCostUsd": 0.0001})] {
        let tool = json!([{"name": "now", "execution": {"mode": "static", "output": {}}}]);
        let call = Reply::stream().call(0, "c1", "now", "{}").finish("tool_calls").usage(60, 5).done();
        let one = Upstream::serve([call]).await.unwrap();
        let two = Upstream::serve([]).await.unwrap();
        let mut agent = config(tool, json!({"budget": budget}));
        agent["model"] = json!({"name": "first"});
        let yard = Yard::with_registry(agent, registry(&one, &two)).await;
        let run = yard.say("what time is it?").await;
        yard.until(&run, RunStatus::Failed).await;
        let events = yard.events(&run).await;
        let end = finished(&events);
        assert_eq!(end.error, Some(ErrorCode::BudgetExceeded));
        assert!(end.message.as_deref().unwrap().contains("budget"), "{:?}", end.message);
        assert_eq!(one.requests().len(), 1);
    }
}

/// All runs of an agent share its own budget.
#[tokio::test]
async fn an_agent_stops_at_its_budget_of_the_day() {
    let one = Upstream::serve([said("yes")]).await.unwrap();
    let two = Upstream::serve([]).await.unwrap();
    let agent = first_model(json!({"budget": {"agent": {"maxTokens": 110}}}));
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = yard.say("first").await;
    yard.until(&run, RunStatus::Completed).await;
    let run = yard.say("second").await;
    yard.until(&run, RunStatus::Failed).await;
    let events = yard.events(&run).await;
    assert_eq!(finished(&events).error, Some(ErrorCode::BudgetExceeded));
    assert!(finished(&events).message.as_deref().unwrap().contains("110 tokens"), "{events:?}");
}

fn talkative(when_full: &str) -> Value {
    first_model(json!({"context": {"maxInputTokens": 400, "keepLast": 2, "whenFull": when_full}}))
}

/// A vendor that summarizes when it is asked to, and else answers.
async fn attentive() -> Upstream {
    Upstream::answer(|seen: &Seen| {
        let asks = seen.body["messages"][0]["content"]
            .as_str()
            .is_some_and(|s| s.contains("memory of a conversation"));
        if asks { said("They spoke of boats.") } else { said("Go on.") }
    })
    .await
    .unwrap()
}

async fn talk(yard: &Yard, turns: usize) -> RunId {
    let mut last = None;
    for n in 0..turns {
        let run = yard.say(&format!("Message {n}: {}", "boats and harbours ".repeat(12))).await;
        yard.until(&run, RunStatus::Completed).await;
        last = Some(run);
    }
    last.unwrap()
}

/// The older part becomes a summary, durably: later runs read it and do not
/// ask for it again. The messages stay.
#[tokio::test]
async fn a_long_conversation_is_summarized_once_and_kept() {
    let (one, two) = (attentive().await, Upstream::serve([]).await.unwrap());
    let yard = Yard::with_registry(talkative("summarize"), registry(&one, &two)).await;
    talk(&yard, 5).await;
    let run = talk(&yard, 1).await;
    let seen = one.requests();
    let asked = seen.iter().filter(|s| all_text(s).contains("memory of a conversation")).count();
    assert!((1..=4).contains(&asked), "{asked} summaries in six turns");
    let last = all_text(seen.last().unwrap());
    assert!(last.contains("They spoke of boats."), "{last}");
    assert!(!last.contains("Message 1"), "{last}");
    assert_eq!(yard.messages().await.len(), 12, "nothing is lost");
    let mut found = compacted(&yard.events(&run).await).len();
    for message in yard.messages().await.iter().filter_map(|m| m.run.clone()) {
        let events = yard.events(&message).await;
        found += compacted(&events).len();
        if let Some(event) = compacted(&events).first() {
            assert_eq!(event.summary.shown().unwrap(), "They spoke of boats.");
            assert_eq!(event.cost, Some(300));
        }
    }
    assert!(found >= 1);
}

/// A summary that fails takes the place of nothing: the call goes out shorter,
/// and the next one asks again.
#[tokio::test]
async fn a_failed_summary_loses_nothing() {
    let one = Upstream::answer(|seen: &Seen| {
        let asks = all_text(seen).contains("memory of a conversation");
        if asks { Reply::refusal(400, "not today") } else { said("Go on.") }
    })
    .await
    .unwrap();
    let two = Upstream::serve([]).await.unwrap();
    let yard = Yard::with_registry(talkative("summarize"), registry(&one, &two)).await;
    let run = talk(&yard, 6).await;
    let seen = one.requests();
    assert!(seen.iter().any(|s| all_text(s).contains("memory of a conversation")));
    let last = all_text(seen.last().unwrap());
    assert!(last.contains("Message 5") && !last.contains("Message 0"), "{last}");
    assert!(compacted(&yard.events(&run).await).is_empty());
}

/// The model that takes over a conversation takes over its summaries too.
#[tokio::test]
async fn another_model_summarizes_when_the_first_is_out_of_order() {
    let one = Upstream::answer(|seen: &Seen| {
        let asks = all_text(seen).contains("memory of a conversation");
        if asks { Reply::refusal(503, "out of order") } else { said("Go on.") }
    })
    .await
    .unwrap();
    let two = attentive().await;
    let yard = Yard::with_registry(talkative("summarize"), registry(&one, &two)).await;
    talk(&yard, 6).await;
    let last = all_text(one.requests().last().unwrap());
    assert!(last.contains("They spoke of boats."), "{last}");
    assert!(two.requests().iter().all(|s| all_text(s).contains("memory of a conversation")));
}

/// A budget in dollars never runs on a model without a price.
#[tokio::test]
async fn a_budget_in_dollars_needs_a_price() {
    let (one, two) = (Upstream::serve([]).await.unwrap(), Upstream::serve([]).await.unwrap());
    let agent = first_model(json!({"budget": {"maxCostUsd": 1.0}}));
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = posted(&yard, "hello", "one/unpriced").await.unwrap();
    yard.until(&run, RunStatus::Failed).await;
    let events = yard.events(&run).await;
    assert_eq!(finished(&events).error, Some(ErrorCode::BudgetExceeded));
    assert!(finished(&events).message.as_deref().unwrap().contains("no price"));
    assert!(one.requests().is_empty());
}

/// A cancel is heard while the model still works on a summary.
#[tokio::test]
async fn a_cancel_is_heard_while_a_summary_is_made() {
    let one = Upstream::answer(|seen: &Seen| {
        let asks = all_text(seen).contains("memory of a conversation");
        if asks { Reply::silent() } else { said("Go on.") }
    })
    .await
    .unwrap();
    let two = Upstream::serve([]).await.unwrap();
    let yard = Yard::with_registry(talkative("summarize"), registry(&one, &two)).await;
    let mut asked = 0;
    let mut run = yard.say(&"boats and harbours ".repeat(12)).await;
    while asked == 0 {
        one.requests_reach(one.requests().len().max(1)).await;
        asked = one.requests().iter().filter(|s| all_text(s).contains("memory of a conversation")).count();
        if asked == 0 && yard.status(&run).await == RunStatus::Completed {
            run = yard.say(&"boats and harbours ".repeat(12)).await;
        }
        tokio::task::yield_now().await;
    }
    yard.rt.cancel(yard.caller(), run.clone(), None).await.unwrap();
    yard.until(&run, RunStatus::Canceled).await;
}

/// `drop` leaves the older part out without a model call; `error` ends the run.
#[tokio::test]
async fn a_long_conversation_is_cut_or_refused_as_the_agent_says() {
    let (one, two) = (attentive().await, Upstream::serve([]).await.unwrap());
    let yard = Yard::with_registry(talkative("drop"), registry(&one, &two)).await;
    talk(&yard, 6).await;
    let last = all_text(one.requests().last().unwrap());
    assert!(!last.contains("Message 0") && last.contains("Message 5"), "{last}");
    assert!(one.requests().iter().all(|s| !all_text(s).contains("memory of a conversation")));

    let (one, two) = (attentive().await, Upstream::serve([]).await.unwrap());
    let yard = Yard::with_registry(talkative("error"), registry(&one, &two)).await;
    let long = yard.say(&"boats ".repeat(400)).await;
    yard.until(&long, RunStatus::Failed).await;
    assert_eq!(finished(&yard.events(&long).await).error, Some(ErrorCode::ContextTooLong));
    assert!(one.requests().is_empty());
}

/// An uploaded picture travels inside the request: no vendor reaches the gateway.
#[tokio::test]
async fn an_uploaded_picture_reaches_the_model() {
    let (one, two) = (Upstream::serve([said("A cat")]).await.unwrap(), Upstream::serve([]).await.unwrap());
    let yard = Yard::with_registry(first_model(json!({})), registry(&one, &two)).await;
    let (id, bytes) = (FileId::mint(), b"\x89PNG not really".to_vec());
    let (tenant, file) = (yard.tenant.clone(), id.clone());
    let stored = yard.rt.store().write(move |tx| {
        Box::pin(async move {
            let hash = Hash::of(&bytes);
            blobs::put(tx, &tenant, &hash, &bytes).await?;
            let row = FileRow {
                id: file,
                hash,
                media_type: "image/png".to_owned(),
                name: None,
                bytes: i64::try_from(bytes.len()).unwrap(),
                entity: None,
                run: None,
                created_at: tx.now().await?,
            };
            blobs::put_file(tx, &tenant, &row).await
        })
    });
    stored.await.map_err(|e: toolyard_store::StoreError| e).unwrap();
    let post = PostMessage {
        trace: None,
        by: yard.secret(),
        space: yard.space.clone(),
        sender: Some(yard.ada.clone()),
        speaker: Speaker::User,
        parts: vec![
            Part::text("What is this?"),
            Part::File { media_type: "image/png".to_owned(), file: Some(id), url: None, name: None },
        ],
        metadata: None,
        trigger_agents: true,
        model: None,
        categories: None,
        client_tools: Default::default(),
    };
    let Fresh::Done(posted) = yard.rt.post_message(post, None).await.unwrap() else {
        panic!("no key was given")
    };
    yard.until(posted.runs[0].run.as_ref().unwrap(), RunStatus::Completed).await;
    let body = one.requests()[0].body.to_string();
    assert!(body.contains("data:image/png;base64,iVBORyBub3QgcmVhbGx5"), "{body}");
}

/// `output.schema` of the agent is the form of the reply.
#[tokio::test]
async fn an_agent_asks_for_replies_of_its_schema() {
    let (one, two) =
        (Upstream::serve([said("{\"n\":1}")]).await.unwrap(), Upstream::serve([]).await.unwrap());
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let agent = first_model(json!({"output": {"schema": schema, "name": "number"}}));
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = yard.say("count").await;
    yard.until(&run, RunStatus::Completed).await;
    let format = &one.requests()[0].body["response_format"];
    assert_eq!(format["json_schema"]["name"], "number", "{format}");
}
