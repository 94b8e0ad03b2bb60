//! Replays: a new run from any step of an old one. What came before the step is
//! taken over, and nothing of it is executed again.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{ask, fine, message};
use crate::yard::{Yard, data};

const CALL: &str = "call getUserApproval {\"q\":\"ok?\"}";

impl Yard {
    /// A run with a client tool, to its end: step 1 calls, step 2 answers.
    async fn answered(&self) -> String {
        let run = self.say(CALL).await;
        self.answer_call(&run, json!({"approved": true})).await;
        self.finish(&run).await;
        run
    }

    async fn answer_call(&self, run: &str, result: Value) {
        let call = self.wait_of(run).await["toolCallId"].clone();
        let (status, _) = self.submit(Some("ann"), run, json!({"callId": call, "result": result})).await;
        assert_eq!(status, 200);
    }

    async fn replay(&self, user: &str, run: &str, body: Value) -> (u16, Value) {
        let path = format!("/api/runs/{run}/replay");
        let (status, answer) = ask(self.gateway.user(user, Method::POST, &path).json(&body)).await;
        (status.as_u16(), answer)
    }

    async fn log(&self, run: &str) -> Vec<Value> {
        let page = self.gateway.get(&format!("/api/runs/{run}/events")).await;
        page["events"].as_array().unwrap().clone()
    }

    /// Role and run of each message of the line that the space goes on with.
    async fn line(&self) -> Vec<(String, Option<String>)> {
        let path = format!("/api/smart-spaces/{}/messages?branch=current", self.space);
        let told = |field: &Value| field.as_str().map(str::to_owned);
        let list = self.gateway.get(&path).await;
        let messages = list["messages"].as_array().unwrap().iter();
        messages.map(|m| (told(&m["role"]).unwrap(), told(&m["runId"]))).collect()
    }
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[tokio::test]
async fn a_replay_takes_the_steps_before_over_and_executes_none_of_them_again() {
    let yard = Yard::new().await;
    let old = yard.answered().await;
    let (status, made) = yard.replay("bob", &old, json!({"step": 2})).await;
    assert_eq!(status, 201, "{made}");
    let new = made["runId"].as_str().unwrap();
    assert_eq!(made["streamUrl"], format!("/api/runs/{new}/stream"));
    let told = yard.finish(new).await;
    assert_eq!(told.last().unwrap().event.as_deref(), Some("run.completed"));
    assert!(told.iter().all(|event| event.event.as_deref() != Some("run.waiting_tool")));
    let created = data(&told[0]);
    assert_eq!(
        (&created["replayedRunId"], &created["replayedStep"], &created["triggeredById"]),
        (&json!(old), &json!(2), &json!(yard.bob))
    );

    // The copy says what was said, under names of its own, and costs nothing.
    let (before, after) = (yard.log(&old).await, yard.log(new).await);
    let (was, is) = (of(&before, "tool-output-available")[0], of(&after, "tool-output-available")[0]);
    assert_eq!(is["output"], json!({"approved": true}));
    assert_ne!(is["toolCallId"], was["toolCallId"]);
    let asked = of(&after, "tool-input-available")[0];
    assert_eq!((&asked["executionTarget"], &asked["input"]), (&json!("server"), &json!({"q": "ok?"})));
    let replies = of(&after, "message.assistant");
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0]["usage"]["outputTokens"], 0);
    let waits = yard.gateway.get(&format!("/api/waits?runId={new}")).await;
    assert_eq!(waits["waits"], json!([]));

    // The space goes on with the new answer; the old one stays where it was.
    let line = yard.line().await;
    assert_eq!(line, [("user".to_owned(), None), ("assistant".to_owned(), Some(new.to_owned()))]);
    let all = yard.gateway.get(&format!("/api/smart-spaces/{}/messages", yard.space)).await;
    assert_eq!(all["messages"].as_array().unwrap().len(), 3);
    let stretches = all["line"].as_array().unwrap();
    assert_eq!(stretches.len(), 2);
    assert_eq!((&stretches[0]["branchId"], stretches[1]["upTo"].is_null()), (&json!("main"), true));
    assert_eq!(stretches[0]["upTo"], created["historyTo"]);

    // It stands for itself: without the old run, and as the past of later ones.
    let gone = yard.gateway.secret(Method::DELETE, &format!("/api/runs/{old}")).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    let (_, third) = yard.replay("ann", new, json!({"step": 2})).await;
    assert!(of(&yard.log(third["runId"].as_str().unwrap()).await, "run.failed").is_empty());
    yard.finish(third["runId"].as_str().unwrap()).await;
    let later = yard.say("hello").await;
    assert_eq!(yard.finish(&later).await.last().unwrap().event.as_deref(), Some("run.completed"));
}

#[tokio::test]
async fn a_replay_of_the_first_step_asks_the_client_again() {
    let yard = Yard::new().await;
    let old = yard.answered().await;
    let (status, made) = yard.replay("ann", &old, json!({})).await;
    assert_eq!(status, 201, "{made}");
    let new = made["runId"].as_str().unwrap().to_owned();
    let wait = yard.wait_of(&new).await;
    assert_eq!((&wait["kind"], &wait["toolName"]), (&json!("client"), &json!("getUserApproval")));
    // One live run of an agent in a space.
    let (status, busy) = yard.replay("ann", &old, json!({"step": 2})).await;
    assert_eq!((status, &busy["error"]["code"]), (409, &json!("run_busy")));
    yard.answer_call(&new, json!("no")).await;
    yard.finish(&new).await;
    let log = yard.log(&new).await;
    assert_eq!(of(&log, "tool-output-available")[0]["output"], json!("no"));
}

#[tokio::test]
async fn a_replay_opens_no_question_that_was_answered_before_its_step() {
    let yard = Yard::new().await;
    let old = yard.say("call guarded {\"q\":\"may I\"}").await;
    let wait = yard.wait_of(&old).await;
    let path = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    fine(yard.gateway.user("ann", Method::POST, &path).json(&json!({"decision": "deny"}))).await;
    yard.finish(&old).await;
    let (_, made) = yard.replay("ann", &old, json!({"step": 2})).await;
    let new = made["runId"].as_str().unwrap();
    let told = yard.finish(new).await;
    assert_eq!(told.last().unwrap().event.as_deref(), Some("run.completed"));
    let log = yard.log(new).await;
    assert!(of(&log, "tool-approval-request").is_empty());
    assert_eq!(of(&log, "tool-error")[0]["outcome"], "denied");
}

#[tokio::test]
async fn a_replay_hears_what_the_old_run_heard_on_its_way() {
    let yard = Yard::new().await;
    let old = yard.say(CALL).await;
    yard.wait_of(&old).await;
    // The call is given up for it.
    assert_eq!(yard.say("hello").await, old);
    yard.finish(&old).await;
    let before = yard.log(&old).await;
    let last = of(&before, "message.assistant").last().unwrap()["step"].clone();
    let (status, made) = yard.replay("ann", &old, json!({"step": last})).await;
    assert_eq!(status, 201, "{made}");
    let new = made["runId"].as_str().unwrap().to_owned();
    yard.finish(&new).await;
    let heard = |run: &str| (("user".to_owned(), None), ("assistant".to_owned(), Some(run.to_owned())));
    let (user, answer) = heard(&new);
    assert_eq!(yard.line().await, [user.clone(), answer.clone(), user, answer]);
    let after = yard.log(&new).await;
    assert_eq!(of(&after, "message.user").len(), 1);
    assert_ne!(of(&after, "message.user")[0]["messageIds"], of(&before, "message.user")[0]["messageIds"]);
}

#[tokio::test]
async fn a_replay_is_for_members_and_from_a_step_that_there_is() {
    let yard = Yard::new().await;
    let run = yard.answered().await;
    for (body, told) in [
        (json!({"step": 3}), "step: this run has steps 1 to 2, not 3"),
        (json!({"step": 0}), "step: must be a whole number above 0"),
    ] {
        let (status, refused) = yard.replay("ann", &run, body).await;
        assert_eq!((status, message(&refused)), (400, told));
    }
    let (status, refused) = yard.replay("ann", &run, json!({"model": "nobody/none"})).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")));
    let (status, _) = yard.replay("eve", &run, json!({"step": 2})).await;
    assert_eq!(status, 403);
    let (status, _) = yard.replay("ann", "run_none", json!({"step": 2})).await;
    assert_eq!(status, 404);
    assert_eq!(yard.line().await.len(), 2, "nothing was changed");

    // A repeat of the same request gets the same run.
    let again = async || {
        let path = format!("/api/runs/{run}/replay");
        let request = yard.gateway.user("ann", Method::POST, &path).header("idempotency-key", "once");
        fine(request.json(&json!({"step": 2}))).await["runId"].clone()
    };
    let first = again().await;
    assert_eq!(again().await, first);
}
