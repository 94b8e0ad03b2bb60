//! What follows when a model fails, or cannot take what it is asked.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use toolyard_egress::{Door, Target};
use toolyard_models::openai::OpenAi;
use toolyard_models::scripted::{Reply, Seen, Upstream};
use toolyard_models::wire::Timeouts;
use toolyard_models::{
    Chunk, Detail, Model, ModelError, ModelRecord, ModelStream, Providers, Registry, Request, Retry,
};
use toolyard_protocol::ErrorCode;
use toolyard_protocol::event::{Event, PluginEmitted};
use toolyard_protocol::run::RunStatus;

use crate::models::{all_text, compacted, described, finished, first_model, registry, replies, said};
use crate::yard::{Yard, config};

/// A vendor that is given up after its first failure.
fn hasty(name: &str, upstream: &Upstream) -> OpenAi {
    let base = Target::parse(&upstream.base_url()).unwrap();
    OpenAi::new(name, Door::operator().unwrap(), &base, None)
        .with_retry(Retry { max: 0, pause: Duration::from_millis(1) })
}

/// `first` falls back on `second`.
fn two(first: Arc<dyn Model>, second: Arc<dyn Model>) -> Registry {
    let mut providers = Providers::default();
    providers.insert("one", first);
    providers.insert("two", second);
    let first = ModelRecord { fallback: vec!["second".to_owned()], ..described("first", "one") };
    Registry::new(providers, vec![first, described("second", "two")]).unwrap()
}

/// Row S7: busy, out of order, out of money or silent: the next one answers.
#[tokio::test]
async fn s7_the_next_model_answers_on_429_5xx_an_empty_account_and_a_time_out() {
    let quota = json!({ "error": { "message": "x", "code": "insufficient_quota" } });
    for (what, reply) in [
        ("429", Reply::refusal(429, "slow down")),
        ("quota", Reply::refusing(429, &quota)),
        ("500", Reply::refusal(500, "broken")),
        ("503", Reply::refusal(503, "busy")),
        ("time-out", Reply::silent()),
    ] {
        let one = Upstream::serve([reply]).await.unwrap();
        let two_ = Upstream::serve([said("I am here")]).await.unwrap();
        let first = match what {
            "time-out" => {
                let head = Duration::from_millis(200);
                hasty("one", &one).with_timeouts(Timeouts { head, ..Timeouts::default() })
            }
            _ => hasty("one", &one),
        };
        let registry = two(Arc::new(first), Arc::new(hasty("two", &two_)));
        let yard = Yard::with_registry(first_model(json!({})), registry).await;
        let run = yard.say("hello").await;
        yard.until(&run, RunStatus::Completed).await;
        assert_eq!(yard.answer().await, "I am here", "{what}");
        let events = yard.events(&run).await;
        assert_eq!(replies(&events)[0].model.shown().unwrap(), "two/two-large", "{what}");
        assert_eq!((one.requests().len(), two_.requests().len()), (1, 1), "{what}");
    }
}

/// A provider that says a word and then that it is busy.
#[derive(Debug)]
struct Faltering(Vec<Chunk>);

impl Model for Faltering {
    fn stream(&self, _: Request) -> ModelStream {
        let busy = ModelError::Overloaded { status: 503, retry_after: None, detail: Detail::new("busy") };
        let chunks = self.0.clone().into_iter().map(Ok).chain([Err(busy)]);
        futures::stream::iter(chunks.collect::<Vec<_>>()).boxed()
    }
    fn provider(&self) -> &str {
        "one"
    }
}

/// Row S7: what was heard of one model is never continued by another, whatever
/// the provider calls its failure.
#[tokio::test]
async fn s7_nobody_takes_over_after_the_first_word() {
    let words = [
        Chunk::text("half"),
        Chunk::ReasoningDelta { text: "hm".to_owned() },
        Chunk::ToolInputStart { index: 0, name: "now".to_owned() },
    ];
    for word in words {
        let second = Upstream::serve([said("never")]).await.unwrap();
        let registry = two(Arc::new(Faltering(vec![word.clone()])), Arc::new(hasty("two", &second)));
        let yard = Yard::with_registry(first_model(json!({})), registry).await;
        let run = yard.say("hello").await;
        yard.until(&run, RunStatus::Failed).await;
        assert_eq!(finished(&yard.events(&run).await).error, Some(ErrorCode::ModelOverloaded), "{word:?}");
        assert!(second.requests().is_empty(), "{word:?}");
    }
    // Before a word the same failure lets the next one answer.
    let second = Upstream::serve([said("yes")]).await.unwrap();
    let registry = two(Arc::new(Faltering(Vec::new())), Arc::new(hasty("two", &second)));
    let yard = Yard::with_registry(first_model(json!({})), registry).await;
    let run = yard.say("hello").await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(yard.answer().await, "yes");
}

/// A vendor that reads little and summarizes when it is asked to.
async fn short_sighted(most: usize) -> Upstream {
    Upstream::answer(move |seen: &Seen| {
        let text = all_text(seen);
        let long = json!({ "error": { "message": "canary", "code": "context_length_exceeded" } });
        if text.contains("memory of a conversation") {
            said("They spoke of boats.")
        } else if text.len() > most {
            Reply::refusing(400, &long)
        } else {
            said("Go on.")
        }
    })
    .await
    .unwrap()
}

async fn talk(yard: &Yard, turns: usize, end: RunStatus) -> toolyard_protocol::RunId {
    let mut last = None;
    for n in 0..turns {
        let run = yard.say(&format!("Message {n}: {}", "boats and harbours ".repeat(12))).await;
        let status = if n + 1 == turns { end } else { RunStatus::Completed };
        yard.until(&run, status).await;
        last = Some(run);
    }
    last.unwrap()
}

/// A vendor that finds a conversation too long is asked once more with a
/// summary of it, durably, though nobody configured how much it reads.
#[tokio::test]
async fn s7_a_conversation_that_the_vendor_finds_too_long_is_summarized_and_sent_again() {
    let (one, two) = (short_sighted(1500).await, Upstream::serve([]).await.unwrap());
    let agent = first_model(json!({ "context": { "keepLast": 2 } }));
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = talk(&yard, 6, RunStatus::Completed).await;
    let mut found = Vec::new();
    for run in yard.messages().await.iter().filter_map(|m| m.run.clone()).chain([run]) {
        found.extend(compacted(&yard.events(&run).await).into_iter().cloned());
    }
    assert!(!found.is_empty(), "nothing was summarized");
    assert_eq!(found[0].summary.shown().unwrap(), "They spoke of boats.");
    let last = all_text(one.requests().last().unwrap());
    assert!(last.contains("They spoke of boats.") && last.contains("Message 5"), "{last}");
}

/// Who wants to hear of it does, and what cannot be shortened is told too: once
/// more is enough.
#[tokio::test]
async fn s7_a_conversation_that_is_too_long_ends_with_its_own_reason() {
    let (one, two) = (short_sighted(1500).await, Upstream::serve([]).await.unwrap());
    let agent = first_model(json!({ "context": { "whenFull": "error" } }));
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = yard.say(&"boats ".repeat(400)).await;
    yard.until(&run, RunStatus::Failed).await;
    let events = yard.events(&run).await;
    assert_eq!(finished(&events).error, Some(ErrorCode::ContextTooLong));
    assert!(!finished(&events).message.as_deref().unwrap().contains("canary"));
    assert_eq!(one.requests().len(), 1);

    let yard = Yard::with_registry(first_model(json!({})), registry(&one, &two)).await;
    let run = yard.say(&"boats ".repeat(400)).await;
    yard.until(&run, RunStatus::Failed).await;
    assert_eq!(finished(&yard.events(&run).await).error, Some(ErrorCode::ContextTooLong));
    assert_eq!(one.requests().len(), 2, "nothing of one message can be left out");
}

/// All runs of an agent share its budget in dollars.
#[tokio::test]
async fn an_agent_stops_at_its_dollars_of_the_month() {
    let one = Upstream::serve([said("yes")]).await.unwrap();
    let two = Upstream::serve([]).await.unwrap();
    // One answer costs 300 millionths.
    let agent = first_model(json!({ "budget": { "agent": { "maxCostUsd": 0.0003, "per": "month" } } }));
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = yard.say("first").await;
    yard.until(&run, RunStatus::Completed).await;
    let run = yard.say("second").await;
    yard.until(&run, RunStatus::Failed).await;
    let events = yard.events(&run).await;
    assert_eq!(finished(&events).error, Some(ErrorCode::BudgetExceeded));
    let message = finished(&events).message.clone().unwrap();
    assert!(message.contains("0.0003 USD") && message.contains("calendar month"), "{message}");
    assert_eq!(one.requests().len(), 1);
}

/// A summary that says nothing was paid for all the same: the next words that
/// are logged carry it, and so does the budget.
#[tokio::test]
async fn an_empty_summary_counts() {
    let one = Upstream::answer(|seen: &Seen| {
        let asks = all_text(seen).contains("memory of a conversation");
        let empty = Reply::stream().finish("stop").usage(1000, 1).done();
        if asks { empty } else { said("Go on.") }
    })
    .await
    .unwrap();
    let two = Upstream::serve([]).await.unwrap();
    let context = json!({ "maxInputTokens": 400, "keepLast": 2, "whenFull": "summarize" });
    let yard = Yard::with_registry(first_model(json!({ "context": context })), registry(&one, &two)).await;
    let run = talk(&yard, 6, RunStatus::Completed).await;
    let events = yard.events(&run).await;
    assert!(compacted(&events).is_empty());
    let reply = replies(&events)[0];
    // 100 and 1000 tokens read, 10 and 1 written, at 2 and 10 millionths.
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (1100, 11));
    assert_eq!(reply.cost, Some(300 + 2010));
    assert_eq!(finished(&events).cost, Some(300 + 2010));
}

fn emitted(events: &[Event]) -> Vec<&PluginEmitted> {
    events.iter().filter_map(|e| if let Event::PluginEmitted(e) = e { Some(e) } else { None }).collect()
}

/// One bad schema costs one tool, with its reason in the log and a warning for
/// readers, once. Of a private tool they learn only the name.
#[tokio::test]
async fn l23_a_tool_that_is_left_out_is_told_with_its_reason() {
    let call = || Reply::stream().call(0, "c1", "now", "{}").finish("tool_calls").usage(1, 1).done();
    let one = Upstream::serve([call(), said("noon")]).await.unwrap();
    let two = Upstream::serve([]).await.unwrap();
    // An object that must be text as well.
    let broken = json!({ "type": "object", "properties": {}, "anyOf": [{ "type": "string" }] });
    let fixed = |name: &str, schema: &Value, visibility: &str| {
        json!({ "name": name, "inputSchema": schema, "visibility": visibility,
            "execution": { "mode": "static", "output": {} } })
    };
    let tools = json!([
        fixed("now", &json!({ "type": "object", "properties": {} }), "public"),
        fixed("open_one", &broken, "public"),
        fixed("closed_one", &broken, "private"),
    ]);
    let mut agent = config(tools, json!({}));
    agent["model"] = json!({ "name": "first" });
    let yard = Yard::with_registry(agent, registry(&one, &two)).await;
    let run = yard.say("what time is it?").await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(one.requests()[0].body["tools"].as_array().unwrap().len(), 1, "the others are offered");
    let events = yard.events(&run).await;
    let [told] = emitted(&events)[..] else { panic!("{events:?}") };
    assert_eq!((told.plugin.as_str(), told.name.as_str()), ("toolyard", "tools.left-out"));
    let tools = told.value["tools"].as_array().unwrap();
    let reason = |name: &str| tools.iter().find(|t| t["name"] == name).unwrap()["reason"].as_str().unwrap();
    assert!(reason("open_one").contains("no object"), "{tools:?}");
    assert!(!reason("closed_one").contains("no object"), "{tools:?}");
    let facts = replies(&events)[0].metadata.shown().unwrap().to_string();
    assert_eq!(facts.matches("no object").count(), 2, "the log has every reason: {facts}");
}
