//! The ledger through the SDK: list, claim, answer; results one by one and in
//! a batch; users with a token of their own.

use futures::StreamExt;
use serde_json::{Value, json};
use toolyard_client::{
    Answer, Auth, CallId, Client, ErrorCode, EventKind, Remember, RunId, Wait, WaitFilter,
};

use crate::gateway::{Yard, client_tool, eventually};

fn guarded() -> Value {
    json!([{"name": "erase", "description": "Erases.", "approval": "ask", "risk": "high", "visibility": "public",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "execution": {"mode": "pass-through"}}, client_tool("work")])
}

async fn wait_of(yard: &Yard, run: &RunId) -> Wait {
    let filter = WaitFilter { run: Some(run.clone()), ..WaitFilter::default() };
    let first = || async { yard.client.waits().list(&filter).await.unwrap().into_iter().next() };
    eventually("a wait opens", first).await
}

/// The outcome of the run's one call.
async fn ended(yard: &Yard, run: &RunId) -> (String, Value) {
    let events = yard.finish(run).await;
    let returned = events.into_iter().find_map(|event| match event.kind {
        EventKind::Returned(returned) => Some(returned),
        _ => None,
    });
    let returned = returned.expect("a call that ended");
    (returned.outcome.unwrap(), returned.output.or(returned.error.map(Value::String)).unwrap_or_default())
}

const ERASE: &str = "call erase {\"path\": \"a.txt\"}";

#[tokio::test]
async fn an_approval_is_answered_once_edited_denied_for_the_session_and_always() {
    let yard = Yard::new(guarded()).await;
    let run = yard.say(ERASE).await;
    let wait = wait_of(&yard, &run).await;
    assert_eq!((wait.kind.as_str(), wait.may_answer), ("approval", true));
    let payload = wait.payload.clone().unwrap();
    assert_eq!((&payload["args"], &payload["risk"]), (&json!({"path": "a.txt"}), &json!("high")));
    // An answer for other arguments than the ones shown is refused and changes nothing.
    let other = json!({"argsHash": "0".repeat(64)});
    let refused =
        yard.client.waits().answer_shown(&wait.id, &Answer::allow_once(), &other).await.unwrap_err();
    assert!(refused.is(ErrorCode::Conflict), "{refused}");
    yard.client.waits().answer_shown(&wait.id, &Answer::allow_once(), &payload).await.unwrap();
    assert_eq!(ended(&yard, &run).await.0, "ok");
    let late = yard.client.waits().answer(&wait.id, &Answer::deny()).await.unwrap_err();
    assert!(late.is(ErrorCode::RunEnded) || late.is(ErrorCode::WaitEnded), "{late}");

    let run = yard.say(ERASE).await;
    let edit = Answer::Edit(json!({"path": "b.txt"}));
    yard.client.waits().answer(&wait_of(&yard, &run).await.id, &edit).await.unwrap();
    assert_eq!(ended(&yard, &run).await.1["path"], "b.txt");

    let run = yard.say(ERASE).await;
    let deny = Answer::Deny { remember: Remember::Once, message: Some("not that one".to_owned()) };
    yard.client.waits().answer(&wait_of(&yard, &run).await.id, &deny).await.unwrap();
    let (kind, said) = ended(&yard, &run).await;
    assert!(kind == "denied" && said.to_string().contains("not that one"), "{kind} {said}");

    let run = yard.say(ERASE).await;
    let session = Answer::Allow(Remember::Session);
    yard.client.waits().answer(&wait_of(&yard, &run).await.id, &session).await.unwrap();
    assert_eq!(ended(&yard, &run).await.0, "ok");
    let unasked = yard.say(ERASE).await;
    assert_eq!(ended(&yard, &unasked).await.0, "ok", "remembered for the space");
}

#[tokio::test]
async fn an_input_is_provided_and_checked_against_its_form() {
    let ask = json!([{"name": "requestInput", "executionType": "prebuilt", "execution": {"action": "requestInput"}}]);
    let yard = Yard::new(ask).await;
    let form = json!({"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]});
    let run =
        yard.say(&format!("call requestInput {}", json!({"message": "Which size?", "schema": form}))).await;
    let wait = wait_of(&yard, &run).await;
    assert_eq!((wait.kind.as_str(), &wait.payload.unwrap()["message"]), ("input", &json!("Which size?")));
    let wrong =
        yard.client.waits().answer(&wait.id, &Answer::Provide(json!({"size": "big"}))).await.unwrap_err();
    assert!(wrong.to_string().contains("size"), "{wrong}");
    yard.client.waits().answer(&wait.id, &Answer::Provide(json!({"size": 7}))).await.unwrap();
    assert_eq!(ended(&yard, &run).await.1["answer"]["size"], 7);
}

#[tokio::test]
async fn a_claim_keeps_others_away_and_results_come_one_by_one_or_in_a_batch() {
    let yard = Yard::new(guarded()).await;
    let run = yard.say("call work {\"n\": 1}\ncall work {\"n\": 2}\ncall work {\"n\": 3}").await;
    let filter = WaitFilter { run: Some(run.clone()), kind: Some("client"), ..WaitFilter::default() };
    let all =
        || async { Some(yard.client.waits().list(&filter).await.unwrap()).filter(|waits| waits.len() == 3) };
    let waits = eventually("three calls wait", all).await;
    yard.client.waits().claim(&waits[0].id).await.unwrap();
    yard.client.waits().claim(&waits[0].id).await.unwrap();
    let other = yard.gateway.client();
    assert!(other.waits().claim(&waits[0].id).await.unwrap_err().is(ErrorCode::Conflict));
    let calls: Vec<CallId> = waits.iter().map(|wait| wait.tool_call_id.clone()).collect();
    let runs = yard.client.runs();
    assert_eq!(runs.submit(&run, &calls[0], &Ok(json!(1))).await.unwrap().status, "accepted");
    assert_eq!(runs.submit(&run, &calls[0], &Ok(json!(1))).await.unwrap().status, "repeated");
    assert!(runs.submit(&run, &calls[0], &Ok(json!(2))).await.unwrap_err().is(ErrorCode::ResultConflict));
    // All of a batch, or none.
    let unknown = [(calls[1].clone(), Ok(json!(2))), (CallId::mint(), Ok(json!(3)))];
    assert!(runs.submit_all(&run, &unknown).await.unwrap_err().is(ErrorCode::NotFound));
    let batch = [(calls[1].clone(), Ok(Value::Null)), (calls[2].clone(), Err("no".to_owned()))];
    assert_eq!(runs.submit_all(&run, &batch).await.unwrap().len(), 2);
    yard.finish(&run).await;
    assert_eq!(runs.get(&run).await.unwrap().status, "completed");
    let messages = yard.client.spaces().messages(&yard.space, 10).await.unwrap();
    assert!(messages.iter().any(|message| message.role == "assistant"), "{messages:?}");
}

#[tokio::test]
async fn a_user_chats_with_a_token_that_is_asked_for_each_time() {
    use base64_url::encode;
    let yard = Yard::new(guarded()).await;
    let token = || {
        let exp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 600;
        encode(&json!({"sub": "ann", "exp": exp}))
    };
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    let auth = Auth::user_with("pk_test_public_0123456789", move || {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let token = token();
        async move { Ok(token) }
    });
    let ann = Client::builder().base_url(&yard.gateway.url).auth(auth).build().unwrap();
    let mut stream = ann.chat(&yard.space, ERASE).stream().await.unwrap();
    let mut status = None;
    while let Some(item) = stream.next().await {
        match item.unwrap() {
            toolyard_client::ChatEvent::Run(event) => {
                if let EventKind::Asked(asked) = event.kind {
                    assert_eq!(asked.payload.as_ref().unwrap()["args"]["path"], "a.txt");
                    ann.waits().answer(&asked.wait_id, &Answer::allow_once()).await.unwrap();
                }
            }
            toolyard_client::ChatEvent::Finished(response) => status = Some(response.status),
            _ => {}
        }
    }
    assert_eq!(status.as_deref(), Some("completed"));
    assert!(asked.load(std::sync::atomic::Ordering::SeqCst) >= 3);
    // What is for backends is refused.
    assert!(ann.entities().person("x", "X").await.unwrap_err().is(ErrorCode::Unauthorized));
}

/// A token signed as the gateway of the tests expects it.
mod base64_url {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use serde_json::Value;

    fn openssl(args: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child =
            Command::new("openssl").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().stdout
    }

    fn b64(bytes: &[u8]) -> String {
        let text = String::from_utf8(openssl(&["base64", "-A"], bytes)).unwrap();
        text.trim().replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned()
    }

    pub(super) fn encode(claims: &Value) -> String {
        let input =
            format!("{}.{}", b64(b"{\"alg\":\"HS256\",\"typ\":\"JWT\"}"), b64(claims.to_string().as_bytes()));
        let key = "jwt-secret-of-the-tests-0123456789ab";
        let tag = openssl(&["dgst", "-sha256", "-hmac", key, "-binary"], input.as_bytes());
        format!("{input}.{}", b64(&tag))
    }
}
