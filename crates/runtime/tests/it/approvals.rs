//! Calls that somebody must allow first.

use serde_json::{Value, json};
use toolyard_engine::facts::Answer;
use toolyard_protocol::event::Event;
use toolyard_protocol::run::{PauseReason, RunStatus};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ErrorCode, Hash, OutcomeKind, RunId, WaitId};
use toolyard_runtime::{AnswerIn, CreateRun, Fresh, Remember};

use crate::yard::{Yard, client_tool, static_tool};

fn asking(mut tool: Value) -> Value {
    tool["approval"] = json!("ask");
    tool
}

async fn asked(yard: &Yard, text: &str) -> (RunId, WaitId) {
    let run = yard.say(text).await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let waits = yard.open_waits(&run).await;
    assert_eq!(waits[0].wait.kind, WaitKind::Approval);
    (run, waits[0].wait.id.clone())
}

fn allow(edited: Option<Value>) -> AnswerIn {
    AnswerIn { answer: Answer::Allow { edited }, remember: None, args_hash: None }
}

fn deny() -> AnswerIn {
    AnswerIn { answer: Answer::Deny { message: None }, remember: None, args_hash: None }
}

#[tokio::test]
async fn a_call_under_ask_is_not_announced_before_it_is_allowed() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {}").await;
    let events = yard.events(&run).await;
    assert!(!events.iter().any(|e| matches!(e, Event::ToolCallRequested(_))));
    assert!(events.iter().any(|e| matches!(e, Event::RunPaused(p) if p.reason == PauseReason::Approval)));
    yard.rt.answer(yard.caller(), wait.clone(), allow(None)).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("pay"));
    // The same answer again is fine, another one is late.
    yard.rt.answer(yard.caller(), wait.clone(), allow(None)).await.unwrap();
    let late = yard.rt.answer(yard.caller(), wait, deny()).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::RunEnded);
}

#[tokio::test]
async fn c13_a_denied_tool_does_not_run_and_the_model_hears_it() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {}").await;
    yard.rt.answer(yard.caller(), wait, deny()).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("Tool execution denied by user"));
    let events = yard.events(&run).await;
    assert!(!events.iter().any(|e| matches!(e, Event::ToolCallRequested(_))));
    assert!(events.iter().any(|e| matches!(e, Event::ToolReturned(r) if r.outcome == OutcomeKind::Denied)));
}

#[tokio::test]
async fn an_allowed_client_tool_waits_for_its_client_with_the_edited_arguments() {
    let yard = Yard::new(json!([asking(client_tool("ask"))])).await;
    let (run, wait) = asked(&yard, "call ask {\"n\":1}").await;
    yard.rt.answer(yard.caller_as(&yard.ada), wait, allow(Some(json!({"n": 2})))).await.unwrap();
    yard.until(&run, RunStatus::WaitingTool).await;
    let waits = yard.open_waits(&run).await;
    assert_eq!((waits.len(), waits[0].wait.kind), (1, WaitKind::Client));
    let events = yard.events(&run).await;
    let args = events.iter().find_map(|e| match e {
        Event::ToolCallRequested(r) => r.args.shown(),
        _ => None,
    });
    assert_eq!(args, Some(&json!({"n": 2})));
    yard.submit(&run, &waits[0].wait.call, json!("done")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
}

#[tokio::test]
async fn edited_arguments_are_checked_again() {
    let yard = Yard::new(json!([asking(client_tool("ask"))])).await;
    let (run, wait) = asked(&yard, "call ask {\"n\":1}").await;
    yard.rt.answer(yard.caller(), wait, allow(Some(json!({"n": "no"})))).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("Parameter n has wrong type"));
}

#[tokio::test]
async fn those_who_may_not_answer_are_refused() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let (_, wait) = asked(&yard, "call pay {}").await;
    let refused = yard.rt.answer(yard.caller_as(&yard.bob), wait, allow(None)).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Forbidden);
}

#[tokio::test]
async fn a_remembered_permission_is_not_asked_for_again_in_its_space() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {}").await;
    let answer = AnswerIn { remember: Some(Remember::Session), ..allow(None) };
    yard.rt.answer(yard.caller(), wait, answer).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let again = yard.say("call pay {}").await;
    yard.until(&again, RunStatus::Completed).await;
    assert!(!yard.kinds(&again).await.contains(&"Asked"));
}

#[tokio::test]
async fn a_remembered_denial_refuses_at_once() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {}").await;
    let answer = AnswerIn { remember: Some(Remember::Always), ..deny() };
    yard.rt.answer(yard.caller(), wait, answer).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let again = yard.say("call pay {}").await;
    yard.until(&again, RunStatus::Completed).await;
    assert!(
        yard.events(&again)
            .await
            .iter()
            .any(|e| matches!(e, Event::ToolReturned(r) if r.outcome == OutcomeKind::Denied))
    );
}

#[tokio::test]
async fn a_run_started_for_somebody_obeys_their_grants_and_their_answers() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {}").await;
    let answer = AnswerIn { remember: Some(Remember::Always), ..deny() };
    yard.rt.answer(yard.caller(), wait, answer).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let create = CreateRun {
        trace: None,
        by: yard.secret(),
        space: yard.space.clone(),
        agent_entity: Some(yard.bot.clone()),
        agent: None,
        triggered_by: Some(yard.ada.clone()),
        metadata: None,
        model: None,
    };
    let Fresh::Done(created) = yard.rt.create_run(create, None).await.unwrap() else { panic!() };
    yard.until(&created.run, RunStatus::Completed).await;
    let first = yard.events(&created.run).await.remove(0);
    let Event::RunCreated(first) = first else { panic!() };
    assert_eq!(first.trigger.map(|t| t.entity), Some(yard.ada.clone()));
}

#[tokio::test]
async fn x13_an_answer_is_for_the_arguments_that_were_shown() {
    let yard = Yard::new(json!([asking(client_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {\"n\":1}").await;
    let events = yard.events(&run).await;
    let payload = events.iter().find_map(|e| match e {
        Event::Asked(asked) => asked.payload.shown().cloned(),
        _ => None,
    });
    let shown: Hash = serde_json::from_value(payload.unwrap()["argsHash"].clone()).unwrap();
    assert_eq!(shown, Hash::of_json(&json!({"n": 1})));
    let of = |hash: Hash| AnswerIn { args_hash: Some(hash), ..allow(None) };
    let other = of(Hash::of_json(&json!({"n": 2})));
    let refused = yard.rt.answer(yard.caller(), wait.clone(), other).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert_eq!(yard.open_waits(&run).await[0].wait.kind, WaitKind::Approval);
    yard.rt.answer(yard.caller(), wait, of(shown)).await.unwrap();
    yard.until(&run, RunStatus::WaitingTool).await;
}

#[tokio::test]
async fn x13_one_approval_is_one_execution() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let calls = 32;
    let (run, _) = asked(&yard, &vec!["call pay {}"; calls].join("\n")).await;
    let waits = yard.open_waits(&run).await;
    assert_eq!(waits.len(), calls);
    let wait = waits[0].wait.id.clone();
    // The same answer, from everywhere at once.
    let answers = (0..20).map(|_| yard.rt.answer(yard.caller(), wait.clone(), allow(None)));
    for answer in futures::future::join_all(answers).await {
        answer.unwrap();
    }
    yard.until_quiet().await;
    yard.until(&run, RunStatus::WaitingTool).await;
    let requested = yard.kinds(&run).await.iter().filter(|k| **k == "ToolCallRequested").count();
    assert_eq!((requested, yard.open_waits(&run).await.len()), (1, calls - 1));
}

#[tokio::test]
async fn c11_an_answer_may_hold_always_for_these_arguments_only() {
    let yard = Yard::new(json!([asking(client_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {\"n\":1}").await;
    let these = AnswerIn { remember: Some(Remember::AlwaysThese), ..allow(None) };
    yard.rt.answer(yard.caller_as(&yard.ada), wait, these).await.unwrap();
    let paid = async |run: &RunId| {
        yard.until(run, RunStatus::WaitingTool).await;
        yard.until_quiet().await;
        let wait = yard.open_waits(run).await.remove(0).wait;
        (wait.kind, wait.call)
    };
    let (kind, call) = paid(&run).await;
    assert_eq!(kind, WaitKind::Client);
    yard.submit(&run, &call, json!("ok")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    // The same arguments pass, others are asked about.
    let run = yard.say("call pay {\"n\":1}").await;
    let (kind, call) = paid(&run).await;
    assert_eq!(kind, WaitKind::Client);
    yard.submit(&run, &call, json!("ok")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    let run = yard.say("call pay {\"n\":2}").await;
    assert_eq!(paid(&run).await.0, WaitKind::Approval);
}

#[tokio::test]
async fn c11_an_agents_rules_allow_ask_and_deny_by_tool_and_arguments() {
    let rules = json!([
        {"decision": "deny", "tool": "read", "args": {"path": "/etc/*"}},
        {"decision": "allow", "tool": "read", "args": {"path": "/tmp/*"}},
        {"decision": "ask", "tool": "rea*"},
    ]);
    let read = json!({"name": "read", "description": "Reads a file", "execution": {"mode": "pass-through"}});
    let extra = json!({"permissions": {"rules": rules}});
    let yard = Yard::with(crate::yard::config(json!([read]), extra)).await;
    let run = yard.say("call read {\"path\":\"/tmp/a\"}").await;
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("/tmp/a"));
    let run = yard.say("call read {\"path\":\"/etc/shadow\"}").await;
    yard.until(&run, RunStatus::Completed).await;
    assert!(yard.answer().await.contains("is not allowed here"));
    asked(&yard, "call read {\"path\":\"/srv/a\"}").await;
}

#[tokio::test]
async fn x13_these_arguments_are_these_and_no_others() {
    let yard = Yard::new(json!([asking(static_tool("pay"))])).await;
    let (run, wait) = asked(&yard, "call pay {}").await;
    let these = AnswerIn { remember: Some(Remember::AlwaysThese), ..allow(None) };
    yard.rt.answer(yard.caller_as(&yard.ada), wait, these).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    asked(&yard, "call pay {\"to\":\"mallory\"}").await;
}

#[tokio::test]
async fn x13_what_others_say_to_a_run_is_not_said_with_its_owners_permissions() {
    let yard = Yard::new(json!([asking(static_tool("pay")), client_tool("ask")])).await;
    let (run, wait) = asked(&yard, "call pay {}").await;
    let always = AnswerIn { remember: Some(Remember::Always), ..allow(None) };
    yard.rt.answer(yard.caller_as(&yard.ada), wait, always).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    // Ada's run waits; what Bob says is read by it when it goes on.
    let run = yard.say("call ask {}").await;
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.until_quiet().await;
    yard.post(&yard.bob, "call pay {}").await;
    let call = yard.open_waits(&run).await[0].wait.call.clone();
    yard.submit(&run, &call, json!("here")).await.unwrap();
    yard.until(&run, RunStatus::WaitingTool).await;
    yard.until_quiet().await;
    assert_eq!(yard.open_waits(&run).await[0].wait.kind, WaitKind::Approval);
}
