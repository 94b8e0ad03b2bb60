//! Webhooks: told at least once, signed, never to the inside.

use reqwest::Method;
use serde_json::{Value, json};

use crate::far_side::{Asked, FarSide};
use crate::gateway::{Folder, Gateway, ask, message};
use crate::yard::{Yard, eventually};

async fn yard(far: &FarSide) -> Yard {
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    Yard::on(Gateway::start_with(Folder::new(), &env).await).await
}

async fn hook(gateway: &Gateway, far: &FarSide, events: Value) -> (String, String) {
    let made =
        gateway.post("/api/webhooks", json!({"url": format!("{}/hook", far.url()), "events": events})).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["webhook"]["id"]), text(&made["secret"]))
}

async fn heard(far: &FarSide, count: usize) -> Vec<Asked> {
    eventually("the delivery", || async { far.asked().len() >= count }).await;
    far.asked()
}

/// What a receiver does with the signature.
fn is_signed(asked: &Asked, secret: &str) -> bool {
    let header = asked.header("x-toolyard-signature").unwrap();
    let (time, hex) = header.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
    let tag = aws_lc_rs::hmac::sign(&key, format!("{time}.{}", asked.body).as_bytes());
    let expected: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(crate::gateway::now().abs_diff(time.parse().unwrap()) < 120);
    hex == expected
}

#[tokio::test]
async fn a_finished_run_is_told_once_and_signed() {
    let far = FarSide::start().await;
    let yard = yard(&far).await;
    let (id, secret) = hook(&yard.gateway, &far, json!(["run.completed", "run.failed"])).await;
    let run = yard.say("hello").await;
    let asked = heard(&far, 1).await.remove(0);
    assert_eq!(asked.line, "POST /hook HTTP/1.1");
    assert!(is_signed(&asked, &secret) && !is_signed(&asked, "whsec_other"));
    let body = asked.json();
    assert_eq!((&body["type"], &body["runId"]), (&json!("run.completed"), &json!(run)));
    assert_eq!((&body["data"]["status"], &body["agent"]), (&json!("completed"), &json!("assistant")));
    assert_eq!(asked.header("x-toolyard-id"), body["id"].as_str());
    assert_eq!(asked.header("x-toolyard-event"), Some("run.completed"));
    let failed = yard.say("fail").await;
    let asked = heard(&far, 2).await.remove(1);
    assert_eq!((&asked.json()["type"], &asked.json()["runId"]), (&json!("run.failed"), &json!(failed)));
    eventually("the state", || async {
        let state = yard.gateway.get("/api/webhooks").await["webhooks"][0].clone();
        state["id"] == json!(id) && state["lastStatus"] == 200 && state["failures"] == 0
    })
    .await;
    let shown = yard.gateway.get("/api/webhooks").await.to_string();
    assert!(!shown.contains(&secret), "{shown}");
    // Nobody told the same thing twice.
    assert_eq!(far.asked().len(), 2);
}

#[tokio::test]
async fn a_waiting_run_is_told_only_while_nobody_is_there() {
    let far = FarSide::start().await;
    let yard = yard(&far).await;
    hook(&yard.gateway, &far, json!(["run.waiting"])).await;
    let run = yard.say("call getUserApproval {\"q\":\"canary-argument\"}").await;
    let body = heard(&far, 1).await[0].json();
    assert_eq!((&body["type"], &body["runId"]), (&json!("run.waiting"), &json!(run)));
    assert_eq!(body["data"]["reason"], "client");
    assert_eq!(body["data"]["waits"].as_array().unwrap().len(), 1);
    assert!(!body.to_string().contains("canary"), "{body}");
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    yard.submit(Some("ann"), &run, json!({"callId": call, "result": 1})).await;
    yard.finish(&run).await;

    // Ann's own program is there now: it hears of the call by itself.
    let register = yard.gateway.user("ann", Method::POST, "/api/clients/register");
    crate::gateway::fine(register.json(&json!({"clientType": "robot"}))).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    yard.wait_of(&run).await;
    // What comes later proves that this was not only late.
    hook(&yard.gateway, &far, json!(["run.completed"])).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    yard.submit(Some("ann"), &run, json!({"callId": call, "result": 1})).await;
    let asked = heard(&far, 2).await;
    let types: Vec<Value> = asked.iter().map(|a| a.json()["type"].clone()).collect();
    assert_eq!(types, ["run.waiting", "run.completed"]);
}

#[tokio::test]
async fn a_refused_delivery_is_tried_again_with_the_same_id() {
    let far = FarSide::start().await;
    let yard = yard(&far).await;
    hook(&yard.gateway, &far, json!(["run.completed"])).await;
    far.will_answer(&[500, 503]);
    yard.say("hello").await;
    let asked = heard(&far, 3).await;
    let ids: Vec<_> = asked.iter().map(|a| a.header("x-toolyard-id").unwrap()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    eventually("the success", || async {
        yard.gateway.get("/api/webhooks").await["webhooks"][0]["failures"] == 0
    })
    .await;
}

#[tokio::test]
async fn a_killed_gateway_tells_after_its_restart() {
    let far = FarSide::start().await;
    let yard = yard(&far).await;
    let (_, secret) = hook(&yard.gateway, &far, json!(["run.completed"])).await;
    // Nobody takes it before the gateway dies.
    far.will_answer(&[500; 100]);
    let run = yard.say("hello").await;
    eventually("the failure", || async {
        yard.gateway.get("/api/webhooks").await["webhooks"][0]["failures"].as_i64() > Some(0)
    })
    .await;
    let folder = yard.gateway.kill();
    let before = far.asked().len();
    far.will_answer(&[]);
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let _again = Gateway::start_with(folder, &env).await;
    let asked = heard(&far, before + 1).await.remove(before);
    assert_eq!(asked.json()["runId"], json!(run));
    assert!(is_signed(&asked, &secret));
}

#[tokio::test]
async fn d1_a_delivery_that_a_kill_cuts_is_made_again_with_its_id() {
    let far = FarSide::start().await;
    let yard = yard(&far).await;
    let (_, secret) = hook(&yard.gateway, &far, json!(["run.completed"])).await;
    // It is on its way when the gateway dies: nobody knows whether it was taken.
    far.will_answer(&[0]);
    let run = yard.say("hello").await;
    let first = heard(&far, 1).await.remove(0);
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str())];
    let again = Gateway::start_with(yard.gateway.kill(), &env).await;
    let second = heard(&far, 2).await.remove(1);
    assert_eq!(first.json()["runId"], json!(run));
    assert_eq!((first.header("x-toolyard-id"), &first.body), (second.header("x-toolyard-id"), &second.body));
    assert!(is_signed(&first, &secret) && is_signed(&second, &secret));
    eventually("the success", || async {
        let state = again.get("/api/webhooks").await["webhooks"][0].clone();
        state["lastStatus"] == 200 && state["failures"] == 0
    })
    .await;
    assert_eq!(far.asked().len(), 2);
}

#[tokio::test]
async fn x10_a_webhook_to_the_inside_is_refused_when_it_is_made() {
    let far = FarSide::start().await;
    let gateway = Gateway::start().await;
    for url in [
        format!("{}/hook", far.url()),
        "http://169.254.169.254/latest".to_owned(),
        "http://localhost/".to_owned(),
        "http://[::ffff:10.0.0.1]/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "https://u:p@example.com/".to_owned(),
        "nonsense".to_owned(),
    ] {
        let asked = gateway.secret(Method::POST, "/api/webhooks");
        let (status, body) = ask(asked.json(&json!({"url": url, "events": ["run.completed"]}))).await;
        assert_eq!(status, 400, "{url}");
        assert!(message(&body).starts_with("url: "), "{body}");
    }
    for events in [json!([]), json!(["run.started"]), json!("run.failed")] {
        let asked = gateway.secret(Method::POST, "/api/webhooks");
        let (status, _) = ask(asked.json(&json!({"url": "https://hooks.example/", "events": events}))).await;
        assert_eq!(status, 400, "{events}");
    }
    for _ in 0..20 {
        gateway
            .post("/api/webhooks", json!({"url": "https://93.184.216.34/", "events": ["run.failed"]}))
            .await;
    }
    let asked = gateway.secret(Method::POST, "/api/webhooks");
    let (status, body) =
        ask(asked.json(&json!({"url": "https://93.184.216.34/", "events": ["run.failed"]}))).await;
    assert_eq!((status.as_u16(), &body["error"]["limit"]), (422, &json!(20)));
    assert_eq!(far.asked().len(), 0);
}
