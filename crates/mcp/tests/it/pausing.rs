//! Servers that ask the user, and servers that take their time.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, json};
use tokio::sync::Notify;
use toolyard_mcp::{Ask, Outcome, Paused, Question, Reply};

use crate::yard::{call, eventually, fault, fault_with, host, object, owner, text};

struct Scripted {
    reply: Reply,
    asked: Mutex<Vec<Question>>,
}

impl Scripted {
    fn new(reply: Reply) -> Arc<Self> {
        Arc::new(Self { reply, asked: Mutex::default() })
    }
}

impl Ask for Scripted {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        self.asked.lock().unwrap().push(question);
        async { self.reply.clone() }.boxed()
    }
}

#[tokio::test]
async fn an_older_server_asks_while_its_call_is_open() {
    let fault = fault("plain");
    for (reply, answer) in [
        (Reply::Accept(json!({ "colour": "red" })), r#"{"action": "accept", "content": {"colour": "red"}}"#),
        (Reply::Decline, r#"{"action": "decline"}"#),
        (Reply::Cancel, r#"{"action": "cancel"}"#),
    ] {
        let scripted = Scripted::new(reply);
        let mut elicit = call("elicit", json!({}));
        elicit.ask = Some(scripted.clone());
        assert_eq!(text(fault.host.call(&owner("a"), &fault.settings, elicit).await), answer);
        let asked = scripted.asked.lock().unwrap();
        let Question::Form { message, schema } = &asked[0] else { panic!("{asked:?}") };
        assert_eq!(
            (message.as_str(), &schema["properties"]["colour"]["type"]),
            ("Which colour?", &json!("string"))
        );
    }
    // Nobody is there to be asked.
    assert_eq!(text(fault.call("elicit", json!({})).await), r#"{"action": "decline"}"#);
    // Sampling was never offered.
    assert!(text(fault.call("sample", json!({})).await).contains("-32601"));
    fault.host.stop().await;
}

/// A person may think longer than a call may be silent.
#[tokio::test]
async fn the_timers_stand_still_while_a_question_is_open() {
    #[derive(Default)]
    struct Slow {
        asked: Notify,
        thought: Notify,
    }
    impl Ask for Slow {
        fn ask(&self, _: Question) -> BoxFuture<'_, Reply> {
            async {
                self.asked.notify_one();
                self.thought.notified().await;
                Reply::Accept(json!({ "colour": "late" }))
            }
            .boxed()
        }
    }
    let limits = json!({ "tool_timeout_sec": 1.0, "total_timeout_sec": 1.5 });
    let (fault, other) = (fault_with("plain", limits.clone()), fault_with("plain", limits));
    fault.catalogue().await;
    other.catalogue().await;
    let slow = Arc::new(Slow::default());
    let mut elicit = call("elicit", json!({}));
    elicit.ask = Some(slow.clone());
    let me = owner("a");
    let (outcome, ()) = tokio::join!(fault.host.call(&me, &fault.settings, elicit), async {
        slow.asked.notified().await;
        // The same limits run out twice elsewhere: that is how long the person thinks.
        for _ in 0..2 {
            let silent = other.call("hang", json!({})).await;
            assert!(matches!(&silent, Outcome::Unknown(_)), "{silent:?}");
        }
        slow.thought.notify_one();
    });
    assert!(text(outcome).contains("late"));
    fault.host.stop().await;
    other.host.stop().await;
}

/// A shared connection does not show one tenant's question to another.
#[tokio::test]
async fn a_question_that_may_be_anybodys_is_asked_of_nobody() {
    let fault = fault("plain");
    fault.catalogue().await;
    let scripted = Scripted::new(Reply::Accept(json!({ "colour": "red" })));
    let other = call("hang", json!({}));
    let stop = other.cancel.clone();
    let somebody_else = owner("b");
    let (outcome, _) = tokio::join!(
        async {
            eventually("the other call", || (fault.count("call") == 1).then_some(())).await;
            let mut elicit = call("elicit", json!({}));
            elicit.ask = Some(scripted.clone());
            let outcome = fault.host.call(&owner("a"), &fault.settings, elicit).await;
            stop.cancel();
            outcome
        },
        fault.host.call(&somebody_else, &fault.settings, other)
    );
    assert_eq!(text(outcome), r#"{"action": "decline"}"#);
    assert!(scripted.asked.lock().unwrap().is_empty());
    fault.host.stop().await;
}

fn paused(outcome: Outcome) -> Paused {
    match outcome {
        Outcome::Paused(paused) => paused,
        other => panic!("not paused: {other:?}"),
    }
}

/// The whole state of a paused call is one value: another process goes on.
#[tokio::test]
async fn a_paused_call_is_resumed_by_another_process() {
    let fault = fault("modern");
    let state = paused(fault.call("ask", json!({ "a": 1 })).await);
    let stored = serde_json::to_string(&state).unwrap();
    fault.host.stop().await;

    let another = host();
    let state: Paused = serde_json::from_str(&stored).unwrap();
    let (key, question) = state.questions().next().unwrap();
    assert!(matches!(question, Question::Form { .. }));
    let replies = Map::from_iter([(key.to_owned(), Reply::Accept(json!({ "colour": "blue" })).to_value())]);
    let outcome =
        another.resume(&owner("a"), &fault.settings, call("ask", json!({ "a": 1 })), state, replies).await;
    assert_eq!(text(outcome), r#"{"colour": {"action": "accept", "content": {"colour": "blue"}}}"#);
    // The same arguments both times.
    let calls: Vec<_> = fault.log().into_iter().filter(|line| line[0] == "call").collect();
    assert_eq!(calls, [json!(["call", "ask", { "a": 1 }]), json!(["call", "ask", { "a": 1 }])]);
    another.stop().await;
}

#[tokio::test]
async fn a_server_may_not_ask_for_ever_and_may_ask_to_be_asked_again() {
    let fault = fault("modern");
    assert_eq!(text(fault.call("retry_me", json!({})).await), "second time");
    let mut outcome = fault.call("ask_forever", json!({})).await;
    for _ in 0..5 {
        let state = paused(outcome);
        let replies = object(json!({ "colour": { "action": "decline" } }));
        outcome = fault
            .host
            .resume(&owner("a"), &fault.settings, call("ask_forever", json!({})), state, replies)
            .await;
    }
    assert!(matches!(&outcome, Outcome::Failed(why) if why.contains("more than 5 times")), "{outcome:?}");
    fault.host.stop().await;
}

#[tokio::test]
async fn a_task_is_followed_to_its_end_asks_and_can_be_cancelled() {
    let fault = fault("modern");
    let ticket = |outcome| match outcome {
        Outcome::Task(ticket) => ticket,
        other => panic!("no task: {other:?}"),
    };
    let plain = ticket(fault.call("task", json!({})).await);
    let stored = serde_json::to_value(&plain).unwrap();
    let plain = serde_json::from_value(stored).unwrap();
    let end = fault.host.follow(&owner("a"), &fault.settings, plain, call("task", json!({}))).await;
    assert_eq!(text(end), "null");

    let asking = ticket(fault.call("task_ask", json!({})).await);
    let state =
        paused(fault.host.follow(&owner("a"), &fault.settings, asking, call("task_ask", json!({}))).await);
    let replies = object(json!({ "colour": { "action": "accept", "content": { "colour": "green" } } }));
    let end =
        fault.host.resume(&owner("a"), &fault.settings, call("task_ask", json!({})), state, replies).await;
    assert!(text(end).contains("green"));
    assert_eq!(fault.count("update-task"), 1);

    let long = ticket(fault.call("task", json!({})).await);
    let stop = call("task", json!({}));
    stop.cancel.cancel();
    assert_eq!(fault.host.follow(&owner("a"), &fault.settings, long, stop).await, Outcome::Canceled);
    assert_eq!(fault.count("cancel-task"), 1);
    // The tool itself was called once each.
    assert_eq!(fault.count("call"), 3);
    fault.host.stop().await;
}
