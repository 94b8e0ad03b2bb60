//! G7, G10: agents whose tools are somebody's HTTP API. X8: their keys are seen
//! by that API alone. X10: no tool reaches the inside by itself. X18: a caller's
//! own credentials go nowhere.

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, PUBLIC, SECRET, ask, fine, message, token};
use crate::yard::{data, join, new_space, new_user, read_all};

const KEY: &str = "canary-support-key-0123456789";

/// A gateway with the sample agent in a space.
struct Desk {
    gateway: Gateway,
    space: String,
}

impl Desk {
    async fn open(far: &FarSide, opened: bool) -> Self {
        let (url, inside) = (far.url(), if opened { far.address.as_str() } else { "" });
        let env = [
            ("SUPPORT_API_URL", url.as_str()),
            ("TOOLYARD_ENV_ALLOW", "SUPPORT_API_URL"),
            ("TOOLYARD_ALLOW_PRIVATE_NETWORK", inside),
            ("TOOLYARD_LOG_LEVEL", "trace"),
            ("TOOLYARD_LOG_FORMAT", "json"),
        ];
        let gateway = Gateway::start_with(Folder::new(), &env).await;
        let put = gateway.secret(Method::PUT, "/api/secrets/SUPPORT_API_KEY");
        assert_eq!(fine(put.json(&json!({"value": KEY}))).await["created"], true);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../agents/support.json");
        let config: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        gateway.post("/api/agents", json!({"config": config})).await;
        let made = gateway.post("/api/entities/agent", json!({"agentId": "support"})).await;
        let space = new_space(&gateway).await;
        join(&gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
        let ann = new_user(&gateway, "ann").await;
        join(&gateway, &space, &ann).await;
        Self { gateway, space }
    }

    async fn say(&self, text: &str) -> String {
        let path = format!("/api/smart-spaces/{}/messages", self.space);
        let posted =
            fine(self.gateway.user("ann", Method::POST, &path).json(&json!({"content": text}))).await;
        posted["runs"][0]["runId"].as_str().unwrap().to_owned()
    }

    async fn events(&self, run: &str) -> Vec<SseEvent> {
        let stream = self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
        read_all(stream.send().await.unwrap()).await
    }

    /// The events of one run from its message to its end.
    async fn run(&self, text: &str) -> Vec<SseEvent> {
        let run = self.say(text).await;
        self.events(&run).await
    }
}

fn one(events: &[SseEvent], name: &str) -> Value {
    let found = events.iter().find(|e| e.event.as_deref() == Some(name));
    let names: Vec<_> = events.iter().filter_map(|e| e.event.clone()).collect();
    data(found.unwrap_or_else(|| panic!("no {name} in {names:?}")))
}

#[tokio::test]
async fn g7_a_support_agent_works_through_its_http_tools() {
    let far = FarSide::start().await;
    let desk = Desk::open(&far, true).await;
    let events = desk.run("call get_order {\"orderId\":\"A/../7 ?x=1\"}").await;
    let asked = far.asked().remove(0);
    assert_eq!(asked.line, "GET /orders/A%2F..%2F7%20%3Fx%3D1 HTTP/1.1");
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let call = one(&events, "tool-input-available");
    assert_eq!(asked.header("idempotency-key"), call["toolCallId"].as_str());
    let output = one(&events, "tool-output-available")["output"].clone();
    let hidden = "Bearer ${secret.SUPPORT_API_KEY}";
    assert_eq!((&output["success"], &output["status"]), (&json!(true), &json!(200)));
    assert_eq!(output["data"], json!({"line": asked.line, "state": "sent", "youSent": hidden}));
    assert_eq!(
        (&output["headers"]["x-echo"], &output["headers"]["set-cookie"]),
        (&json!(hidden), &Value::Null)
    );

    desk.run("call search_orders {\"email\":\"a+b@x.example&admin=1\",\"limit\":5}").await;
    assert_eq!(far.asked()[1].line, "GET /orders?email=a%2Bb%40x.example%26admin%3D1&limit=5 HTTP/1.1");

    far.will_answer(&[422]);
    let events = desk.run("call create_ticket {\"subject\":\"\\\",\\\"admin\\\":true\",\"text\":\"${secret.SUPPORT_API_KEY} {{subject}}\"}").await;
    let ticket = far.asked().remove(2);
    assert_eq!(ticket.line, "POST /tickets HTTP/1.1");
    let text = "${secret.SUPPORT_API_KEY} {{subject}}";
    assert_eq!(ticket.json(), json!({"subject": "\",\"admin\":true", "text": text, "source": "agent"}));
    let output = one(&events, "tool-output-available")["output"].clone();
    assert_eq!((&output["success"], &output["status"]), (&json!(false), &json!(422)));
}

#[tokio::test]
async fn g10_a_tool_that_asks_first_sends_nothing_before_the_answer() {
    let far = FarSide::start().await;
    let desk = Desk::open(&far, true).await;
    let run = desk.say("call refund_order {\"orderId\":\"7\",\"cents\":500}").await;
    let path = format!("/api/approvals?runId={run}");
    crate::yard::eventually("the question", || async {
        !desk.gateway.get(&path).await["waits"][0].is_null()
    })
    .await;
    let wait = desk.gateway.get(&path).await["waits"][0].clone();
    assert_eq!(far.asked().len(), 0);
    let path = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    desk.gateway.post(&path, json!({"decision": "allow"})).await;
    desk.events(&run).await;
    let asked = far.asked();
    assert_eq!((asked.len(), asked[0].line.as_str()), (1, "POST /orders/7/refunds HTTP/1.1"));
    assert_eq!(asked[0].json(), json!({"cents": 500}));
}

#[tokio::test]
async fn x10_a_tool_reaches_no_inside_address_unless_the_operator_opened_it() {
    let far = FarSide::start().await;
    let desk = Desk::open(&far, false).await;
    let events = desk.run("call get_order {\"orderId\":\"7\"}").await;
    let error = one(&events, "tool-error").to_string();
    assert!(error.contains("private or reserved network"), "{error}");
    assert!(!error.contains(&far.address) && !error.contains("canary"), "{error}");
    assert_eq!(far.asked().len(), 0);
}

#[tokio::test]
async fn x8_a_secret_is_seen_by_the_far_side_alone() {
    let far = FarSide::start().await;
    let desk = Desk::open(&far, true).await;
    let run = desk.say("call get_order {\"orderId\":\"7\"}\ncall search_orders {\"email\":\"a@b.c\"}").await;
    let mut seen = desk.events(&run).await.iter().map(|e| e.data.clone()).collect::<String>();
    for path in [
        format!("/api/runs/{run}/events"),
        format!("/api/smart-spaces/{}/messages", desk.space),
        "/api/secrets".to_owned(),
        "/api/agents/support".to_owned(),
        "/api/audit".to_owned(),
    ] {
        seen.push_str(&desk.gateway.get(&path).await.to_string());
    }
    assert_eq!(far.asked().len(), 2);
    for asked in far.asked() {
        assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
        // X18: whoever asked us stays with us.
        let all = format!("{} {} {}", asked.line, asked.head, asked.body);
        for own in [SECRET, PUBLIC, &token("ann")[..40]] {
            assert!(!all.contains(own), "{all}");
        }
    }
    let log = desk.gateway.log();
    assert!(log.contains("\"level\":\"TRACE\""), "nothing was logged");
    assert_eq!(log.lines().find(|line| line.contains(KEY)), None);
    assert!(!seen.contains(KEY), "{seen}");
    assert!(seen.contains("SUPPORT_API_KEY"));
    let folder = desk.gateway.folder.path().join("data");
    let mut files = 0;
    for file in std::fs::read_dir(&folder).unwrap().flatten().filter(|f| f.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes()), "{:?}", file.path());
        files += 1;
    }
    assert!(files >= 3, "{files} files in {folder:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.join("master.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn g10_secrets_are_written_listed_by_name_replaced_and_forgotten() {
    let far = FarSide::start().await;
    let desk = Desk::open(&far, true).await;
    let gateway = &desk.gateway;
    let put = async |name: &str, body: Value| {
        let (status, body) =
            ask(gateway.secret(Method::PUT, &format!("/api/secrets/{name}")).json(&body)).await;
        (status.as_u16(), body)
    };
    assert_eq!(put("SUPPORT_API_KEY", json!({"value": "canary-second"})).await.1["created"], false);
    desk.run("call get_order {\"orderId\":\"7\"}").await;
    assert_eq!(far.asked()[0].header("authorization"), Some("Bearer canary-second"));
    let listed = gateway.get("/api/secrets").await;
    assert_eq!(listed["secrets"].as_array().unwrap().len(), 1);
    let keys: Vec<&String> = listed["secrets"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["createdAt", "name", "updatedAt"]);
    for (name, body, expected) in [
        ("A-B", json!({"value": "x"}), 400),
        ("1A", json!({"value": "x"}), 400),
        ("A", json!({}), 400),
        ("A", json!({"value": ""}), 422),
        ("A", json!({"value": "x".repeat(16_385)}), 422),
        ("A", json!({"value": 7}), 400),
    ] {
        let (status, body) = put(name, body).await;
        assert_eq!(status, expected, "{name}: {body}");
        assert!(!message(&body).contains("xxx"), "{body}");
    }
    let by_user = gateway.user("ann", Method::GET, "/api/secrets");
    assert_eq!(ask(by_user).await.0, 401);
    // Another tenant has secrets of its own.
    let acme = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let acme = acme["key"].as_str().unwrap();
    let theirs = fine(gateway.bare(Method::GET, "/api/secrets").header("x-secret-key", acme)).await;
    assert_eq!(theirs["secrets"], json!([]));
    let theirs = gateway.bare(Method::DELETE, "/api/secrets/SUPPORT_API_KEY").header("x-secret-key", acme);
    assert_eq!(ask(theirs).await.0, 404);
    assert_eq!(ask(gateway.secret(Method::DELETE, "/api/secrets/SUPPORT_API_KEY")).await.0, 204);
    let events = desk.run("call get_order {\"orderId\":\"7\"}").await;
    let error = one(&events, "tool-error").to_string();
    assert!(error.contains("${secret.SUPPORT_API_KEY} is not set"), "{error}");
    assert_eq!(far.asked().len(), 1);
}

#[tokio::test]
async fn x8_in_production_a_key_inside_a_configuration_is_refused() {
    let config = |value: &str| {
        json!({"config": {
            "agent": {"name": "leaky"},
            "model": {"provider": "demo", "name": "demo"},
            "tools": [{"name": "look", "executionType": "request",
                "execution": {"url": "https://api.example/", "headers": {"X-Api-Key": value}}}]
        }})
    };
    let literal = config("canary-literal");
    let development = Gateway::start().await;
    assert_eq!(ask(development.secret(Method::POST, "/api/agents").json(&literal)).await.0, 201);
    let gateway = Gateway::start_with(Folder::new(), &[("TOOLYARD_MODE", "production")]).await;
    let (status, body) = ask(gateway.secret(Method::POST, "/api/agents").json(&literal)).await;
    assert_eq!(status, 400);
    assert!(message(&body).contains("tools[0].execution.headers.X-Api-Key"), "{body}");
    assert!(!message(&body).contains("canary"), "{body}");
    assert_eq!(ask(gateway.secret(Method::POST, "/api/agents").json(&config("${secret.K}"))).await.0, 201);
}

#[tokio::test]
async fn g10_a_request_that_cannot_work_is_refused_when_it_is_stored() {
    let gateway = Gateway::start().await;
    for (execution, says) in [
        (json!({"url": "https://{{host}}/"}), "must not be part of the scheme, host or port"),
        (json!({"url": "file:///etc/passwd"}), "must start with http:// or https://"),
        (json!({"url": "https://a.example/", "headers": {"Host": "b"}}), "cannot be set"),
        (json!({"url": "https://a.example/", "timeout": 3_600_000}), "600000"),
    ] {
        let body = json!({"config": {
            "agent": {"name": "odd"},
            "model": {"provider": "demo", "name": "demo"},
            "tools": [{"name": "look", "executionType": "request", "execution": execution}]
        }});
        let (status, body) = ask(gateway.secret(Method::POST, "/api/agents").json(&body)).await;
        assert_eq!(status, 400);
        assert!(message(&body).contains(says), "{body}");
    }
}
