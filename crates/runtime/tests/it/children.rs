//! Agents that call agents (row G12): the child is a run of its own.

use serde_json::{Value, json};
use toolyard_engine::facts::Answer;
use toolyard_protocol::event::Event;
use toolyard_protocol::message::Speaker;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ErrorCode, OutcomeKind, RunId, limits};
use toolyard_runtime::{AnswerIn, check_agent};
use toolyard_store::runs;

use crate::yard::{Yard, client_tool, config, static_tool};

/// A tool that is an agent with these tools.
fn agent_tool(name: &str, tools: Value, extra: Value) -> Value {
    let mut execution = json!({"agentConfig": config(tools, json!({"agent": {"name": name}}))});
    for (key, value) in extra.as_object().cloned().unwrap_or_default() {
        execution[key] = value;
    }
    json!({"name": name, "description": "Another agent", "executionType": "ai-agent", "execution": execution})
}

fn calling(name: &str, prompt: &str) -> String {
    format!("call {name} {}", json!({ "prompt": prompt }))
}

async fn below(yard: &Yard, root: &RunId) -> Vec<runs::RunRow> {
    let (t, root) = (yard.tenant.clone(), root.clone());
    let read = yard.rt.store().read(move |tx| Box::pin(async move { runs::below(tx, &t, &root).await }));
    read.await.unwrap()
}

/// Waits until the n-th run below the root has this status.
async fn child_until(yard: &Yard, root: &RunId, n: usize, status: RunStatus) -> RunId {
    for _ in 0..400 {
        if let Some(row) = below(yard, root).await.get(n) {
            yard.until(&row.id, status).await;
            return row.id.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no child came: {:?}", yard.kinds(root).await);
}

async fn returned(yard: &Yard, run: &RunId) -> (OutcomeKind, String) {
    let events = yard.events(run).await;
    let end = events.iter().find_map(|e| match e {
        Event::ToolReturned(r) => Some((r.outcome, format!("{:?} {:?}", r.value.shown(), r.error.shown()))),
        _ => None,
    });
    end.unwrap_or_else(|| panic!("no result: {:?}", events.iter().map(Event::kind).collect::<Vec<_>>()))
}

#[tokio::test]
async fn g12_a_child_answers_its_parents_call_and_does_not_talk_in_the_space() {
    let yard = Yard::new(json!([agent_tool("helper", json!([static_tool("look")]), json!({}))])).await;
    let run = yard.say(&calling("helper", "call look {}")).await;
    yard.until(&run, RunStatus::Completed).await;
    let child = below(&yard, &run).await.remove(0);
    assert_eq!((child.status, child.depth), (RunStatus::Completed, 1));
    let (outcome, text) = returned(&yard, &run).await;
    assert_eq!(outcome, OutcomeKind::Ok);
    assert!(text.contains("look") && text.contains(child.id.as_str()), "{text}");
    // Its own call is in its own log, and the space heard two messages only.
    assert!(yard.kinds(&child.id).await.contains(&"ToolReturned"));
    let said: Vec<_> = yard.messages().await.iter().map(|m| m.speaker).collect();
    assert_eq!(said, [Speaker::User, Speaker::Assistant]);
    // What it used counts on its parent too.
    let usage = |events: &[Event]| {
        events.iter().find_map(|e| match e {
            Event::RunFinished(f) => Some(f.usage.output_tokens),
            _ => None,
        })
    };
    let (mine, its) = (usage(&yard.events(&run).await), usage(&yard.events(&child.id).await));
    assert!(its > Some(0) && mine > its, "{mine:?} {its:?}");
    yard.until_quiet().await;
}

#[tokio::test]
async fn g12_what_a_child_asks_shows_on_its_parent_and_is_answered_there() {
    let yard = Yard::new(json!([agent_tool("helper", json!([client_tool("ask")]), json!({}))])).await;
    let run = yard.say(&calling("helper", "call ask {\"n\":1}")).await;
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.until_quiet().await;
    let child = below(&yard, &run).await.remove(0);
    let call = yard.open_waits(&child.id).await[0].wait.call.clone();
    let asked = yard.events(&run).await.into_iter().find_map(|e| match e {
        Event::ChildAsked(asked) => Some(asked),
        _ => None,
    });
    let asked = asked.unwrap();
    assert_eq!((asked.child, asked.kind), (child.id.clone(), WaitKind::Client));
    assert_eq!(asked.payload.shown().unwrap()["args"], json!({"n": 1}));
    // Under the root, as a client knows it.
    yard.submit(&run, &call, json!("forty-two")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.kinds(&run).await.contains(&"ChildAnswered"));
    assert!(yard.answer().await.contains("forty-two"));
    // A repeat is fine and changes nothing.
    yard.submit(&run, &call, json!("forty-two")).await.unwrap();
}

#[tokio::test]
async fn g12_an_approval_of_a_grandchild_reaches_the_root() {
    let mut pay = static_tool("pay");
    pay["approval"] = json!("ask");
    let inner = agent_tool("inner", json!([pay]), json!({}));
    let yard = Yard::new(json!([agent_tool("outer", json!([inner]), json!({}))])).await;
    let run = yard.say(&calling("outer", &calling("inner", "call pay {}"))).await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let family = below(&yard, &run).await;
    assert_eq!(family.iter().map(|r| r.depth).collect::<Vec<_>>(), [1, 2]);
    yard.until(&family[0].id, RunStatus::WaitingTool).await;
    let wait = yard.open_waits(&family[1].id).await[0].wait.id.clone();
    let allow = AnswerIn { answer: Answer::Allow { edited: None }, remember: None, args_hash: None };
    yard.rt.answer(yard.caller_as(&yard.ada), wait, allow).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("pay"));
}

#[tokio::test]
async fn g12_a_cancel_stops_the_whole_family_in_one_commit() {
    let inner = agent_tool("inner", json!([client_tool("ask")]), json!({}));
    let yard = Yard::new(json!([agent_tool("outer", json!([inner]), json!({}))])).await;
    let run = yard.say(&calling("outer", &calling("inner", "call ask {}"))).await;
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.rt.cancel(yard.caller(), run.clone(), None).await.unwrap();
    yard.until(&run, RunStatus::Canceled).await;
    for row in below(&yard, &run).await {
        yard.until(&row.id, RunStatus::Canceled).await;
        assert!(yard.open_waits(&row.id).await.is_empty());
    }
    yard.until_quiet().await;
}

#[tokio::test]
async fn g12_a_new_message_of_the_user_stops_the_child_that_waits() {
    let yard = Yard::new(json!([agent_tool("helper", json!([client_tool("ask")]), json!({}))])).await;
    let run = yard.say(&calling("helper", "call ask {}")).await;
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.until_quiet().await;
    let (same, _) = yard.say_again("never mind").await;
    assert_eq!(same, run);
    yard.until(&run, RunStatus::Completed).await;
    let child = child_until(&yard, &run, 0, RunStatus::Canceled).await;
    assert!(yard.open_waits(&child).await.is_empty());
}

#[tokio::test]
async fn g12_a_child_that_takes_too_long_is_stopped_and_the_parent_goes_on() {
    let tool = agent_tool("helper", json!([client_tool("ask")]), json!({"timeout": 300}));
    let yard = Yard::new(json!([tool])).await;
    let run = yard.say(&calling("helper", "call ask {}")).await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(returned(&yard, &run).await.0, OutcomeKind::Expired);
    child_until(&yard, &run, 0, RunStatus::Canceled).await;
}

#[tokio::test]
async fn g12_a_child_that_fails_is_a_failed_call() {
    let yard = Yard::new(json!([agent_tool("helper", json!([]), json!({}))])).await;
    let run = yard.say(&calling("helper", "fail")).await;
    yard.until(&run, RunStatus::Completed).await;
    let (outcome, text) = returned(&yard, &run).await;
    assert_eq!(outcome, OutcomeKind::Failed);
    assert!(text.contains("Agent helper"), "{text}");
}

#[tokio::test]
async fn g12_a_family_survives_the_death_of_its_node() {
    let yard = Yard::new(json!([agent_tool("helper", json!([client_tool("ask")]), json!({}))])).await;
    let run = yard.say(&calling("helper", "call ask {}")).await;
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.until_quiet().await;
    let yard = yard.crash().await;
    let child = below(&yard, &run).await.remove(0);
    let call = yard.open_waits(&child.id).await[0].wait.call.clone();
    yard.submit(&run, &call, json!("late but here")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("late but here"));
    assert_eq!(below(&yard, &run).await.len(), 1);
}

#[tokio::test]
async fn g12_a_child_with_context_reads_the_conversation_and_one_without_does_not() {
    for (include, expected) in [(true, true), (false, false)] {
        let tool = agent_tool("helper", json!([]), json!({"includeContext": include}));
        let yard = Yard::new(json!([tool])).await;
        let run = yard.say("the code word is heron").await;
        yard.until(&run, RunStatus::Completed).await;
        let run = yard.say(&calling("helper", "hello")).await;
        yard.until(&run, RunStatus::Completed).await;
        let child = below(&yard, &run).await.remove(0);
        let events = yard.events(&child.id).await;
        let Event::RunCreated(created) = &events[0] else { panic!("a birth") };
        assert_eq!(created.history_to > 0, expected);
    }
}

#[tokio::test]
async fn s8_agents_that_call_agents_stop_at_their_depth() {
    let mut tool = agent_tool("bottom", json!([static_tool("look")]), json!({}));
    let mut prompt = "call look {}".to_owned();
    let mut names = vec!["bottom".to_owned()];
    for n in 0..limits::CHILD_DEPTH {
        let name = format!("level{n}");
        tool = agent_tool(&name, json!([tool]), json!({}));
        names.push(name);
    }
    for name in &names {
        prompt = calling(name, &prompt);
    }
    let yard = Yard::new(json!([tool])).await;
    let run = yard.say(&prompt).await;
    yard.until(&run, RunStatus::Completed).await;
    let family = below(&yard, &run).await;
    assert_eq!(family.len(), limits::CHILD_DEPTH as usize);
    let (_, text) = returned(&yard, &family.last().unwrap().id).await;
    assert!(text.contains("the limit is 4 agents below the first"), "{text}");
}

#[tokio::test]
async fn s8_a_run_has_only_so_many_children() {
    let inner = agent_tool("inner", json!([]), json!({}));
    let mut outer = agent_tool("outer", json!([inner]), json!({}));
    let patient = json!({"maxToolFailures": 1000});
    outer["execution"]["agentConfig"]["loop"] = patient.clone();
    let yard = Yard::with(config(json!([outer]), json!({ "loop": patient }))).await;
    let twice = [calling("inner", "hi"), calling("inner", "hi")].join("\n");
    let many = (0..32).map(|_| calling("outer", &twice)).collect::<Vec<_>>().join("\n");
    let run = yard.say(&many).await;
    yard.until(&run, RunStatus::Completed).await;
    let family = below(&yard, &run).await;
    assert_eq!(i64::try_from(family.len()).unwrap(), limits::CHILDREN);
    let mut refused = 0;
    for id in family.iter().map(|row| &row.id).chain([&run]) {
        for event in yard.events(id).await {
            if let Event::ToolReturned(end) = event {
                let why = end.error.shown().is_some_and(|t| t.contains("the limit is 64 agents in one run"));
                refused += usize::from(why);
            }
        }
    }
    assert!(refused > 0);
}

/// Children that work side by side share what their parent has left.
#[tokio::test]
async fn g12_children_at_work_together_never_get_more_than_their_parent_has() {
    let inner = agent_tool("helper", json!([client_tool("ask")]), json!({}));
    let yard = Yard::with(config(json!([inner]), json!({"budget": {"maxTokens": 1000}}))).await;
    let run =
        yard.say(&[calling("helper", "call ask {}"), calling("helper", "call ask {}")].join("\n")).await;
    child_until(&yard, &run, 1, RunStatus::WaitingTool).await;
    let used = spent(&yard.events(&run).await);
    let mut given = 0;
    for child in below(&yard, &run).await {
        let Event::RunCreated(created) = yard.events(&child.id).await.remove(0) else {
            panic!("no beginning")
        };
        let part = created.limits.shown().unwrap().max_tokens.unwrap();
        assert!(part > 300, "a fair part: {part}");
        given += part;
    }
    assert!(used > 0 && given <= 1000 - used, "{given} given, {used} used");
}

/// With just enough for its first step and the child, the parent does not speak again.
#[tokio::test]
async fn g12_what_a_child_used_is_spent_from_its_parents_budget() {
    let family = |budget: Value| config(json!([agent_tool("helper", json!([]), json!({}))]), budget);
    let free = Yard::with(family(json!({}))).await;
    let run = free.say(&calling("helper", "hi")).await;
    free.until(&run, RunStatus::Completed).await;
    let child = below(&free, &run).await.remove(0).id;
    let first = free.events(&run).await.into_iter().filter(|e| matches!(e, Event::ModelReplied(_))).take(1);
    let enough = spent(&first.collect::<Vec<_>>()) + spent(&free.events(&child).await);

    let yard = Yard::with(family(json!({"budget": {"maxTokens": enough}}))).await;
    let run = yard.say(&calling("helper", "hi")).await;
    yard.until(&run, RunStatus::Failed).await;
    let events = yard.events(&run).await;
    let Some(Event::RunFinished(end)) = events.last() else { panic!("no end") };
    assert_eq!(end.error, Some(ErrorCode::BudgetExceeded), "{:?}", end.message);
    assert_eq!(returned(&yard, &run).await.0, OutcomeKind::Ok, "the child had enough");
    assert_eq!(end.usage.input_tokens + end.usage.output_tokens, enough);
}

/// Tokens of the model's replies in a log.
fn spent(events: &[Event]) -> u64 {
    let of = |e: &Event| match e {
        Event::ModelReplied(reply) => reply.usage.input_tokens + reply.usage.output_tokens,
        _ => 0,
    };
    events.iter().map(of).sum()
}

#[test]
fn g12_an_agent_inside_an_agent_is_checked_with_it() {
    let mut inner = agent_tool("helper", json!([]), json!({}));
    inner["execution"]["agentConfig"]["model"] = json!({"name": ""});
    let refused = check_agent(&config(json!([inner]), json!({}))).unwrap_err();
    assert!(refused.message.contains("tools[0].execution.agentConfig"), "{}", refused.message);
    assert!(refused.message.contains("model.name"), "{}", refused.message);
}

#[tokio::test]
async fn g12_what_is_inside_a_private_tool_is_private_however_deep() {
    let mut inner = agent_tool("inner", json!([]), json!({}));
    inner["visibility"] = json!("public");
    let yard = Yard::new(json!([agent_tool("outer", json!([inner]), json!({}))])).await;
    let run = yard.say(&calling("outer", &calling("inner", "hi"))).await;
    yard.until(&run, RunStatus::Completed).await;
    for row in below(&yard, &run).await {
        let events = yard.events(&row.id).await;
        let Event::RunCreated(created) = &events[0] else { panic!("a birth") };
        assert_eq!(created.errand.shown().unwrap().visibility, Visibility::Private, "depth {}", row.depth);
    }
}
