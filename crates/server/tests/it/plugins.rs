//! Rows H49 to H60 and X12 over the whole gateway: a plugin's way from its
//! author to a run, and the ways that end before.

use std::path::Path;
use std::process::Output;

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, ask, fine, message, toolyard};
use crate::samples::call;
use crate::yard::{join, new_space, new_user};

pub(crate) fn time_plugin() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins/time.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

pub(crate) fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut plugin = time_plugin();
    change(&mut plugin);
    plugin
}

/// Runs a command in a folder; answers its JSON.
pub(crate) fn cli(folder: &Path, args: &[&str]) -> Value {
    let Output { status, stdout, stderr } = toolyard(folder).args(args).arg("--json").output().unwrap();
    assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

/// A curator's key pair and its signature on a plugin.
pub(crate) fn signed_by(folder: &Path, curator: &str, plugin: &Value) -> Value {
    let (key, from, to) = (format!("{curator}.key"), "in.json", "out.json");
    if !folder.join(&key).exists() {
        cli(folder, &["plugin", "keygen", "--out", &key, "--curator", curator]);
    }
    std::fs::write(folder.join(from), plugin.to_string()).unwrap();
    cli(folder, &["plugin", "sign", from, "--key", &key, "--out", to]);
    serde_json::from_str(&std::fs::read_to_string(folder.join(to)).unwrap()).unwrap()
}

pub(crate) async fn trust(gateway: &Gateway, curator: &str, plugins: &str) {
    let path = format!("/api/curators/{curator}");
    fine(gateway.secret(Method::PUT, &path).json(&json!({"plugins": [plugins]}))).await;
    let file = gateway.folder.path().join(format!("{curator}.key.pub"));
    let public: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let key = json!({"algorithm": public["algorithm"], "publicKey": public["publicKey"]});
    gateway.post(&format!("{path}/keys"), key).await;
}

pub(crate) async fn install(gateway: &Gateway, plugin: &Value) -> (u16, Value) {
    let (status, body) = ask(gateway.secret(Method::POST, "/api/plugins/install").json(plugin)).await;
    (status.as_u16(), body)
}

/// An agent that uses plugins, and has a tool of its own: a model without
/// any tool calls none.
fn agent(plugins: &Value) -> Value {
    json!({
        "agent": {"name": "clock"}, "model": {"provider": "demo", "name": "demo"}, "plugins": plugins,
        "tools": [{"name": "echo", "description": "Says it again.", "execution": {"mode": "pass-through"}}],
    })
}

/// Such an agent in a space with ann.
pub(crate) async fn space_with(gateway: &Gateway, plugins: Value) -> String {
    gateway.post("/api/agents", json!({ "config": agent(&plugins) })).await;
    let made = gateway.post("/api/entities/agent", json!({"agentId": "clock"})).await;
    let (space, ann) = (new_space(gateway).await, new_user(gateway, "ann").await);
    join(gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
    join(gateway, &space, &ann).await;
    space
}

pub(crate) async fn production(env: &[(&str, &str)]) -> Gateway {
    let env: Vec<_> = [("TOOLYARD_MODE", "production")].into_iter().chain(env.iter().copied()).collect();
    Gateway::start_with(Folder::new(), &env).await
}

/// Minutes since midnight of `11/16/2026, 4:05:06 PM`.
fn minutes(formatted: &str) -> i64 {
    let (_, clock) = formatted.split_once(", ").unwrap();
    let (clock, half) = clock.split_once(' ').unwrap();
    let parts: Vec<i64> = clock.split(':').map(|part| part.parse().unwrap()).collect();
    (parts[0] % 12 + if half == "PM" { 12 } else { 0 }) * 60 + parts[1]
}

#[tokio::test]
async fn h53_the_time_plugin_is_signed_installed_and_called_in_five_time_zones() {
    let gateway = production(&[]).await;
    let folder = gateway.folder.path();
    let document = signed_by(folder, "acme", &time_plugin());
    trust(&gateway, "acme", "dev-*").await;
    let (status, done) = install(&gateway, &document).await;
    assert_eq!((status, &done["plugin"]["verified"]), (200, &json!(true)), "{done}");
    assert_eq!(done["plugin"]["curators"], json!(["acme"]));
    let space = space_with(&gateway, json!(["dev-time-plugin@^1"])).await;
    // Zones without summer time, so that the difference is known.
    for (zone, offset) in [
        ("UTC", 0),
        ("Asia/Tokyo", 9 * 60),
        ("Asia/Kolkata", 5 * 60 + 30),
        ("Asia/Kathmandu", 5 * 60 + 45),
        ("America/Phoenix", -7 * 60),
    ] {
        let output = call(&gateway, &space, "get_current_time", json!({"timezone": zone})).await.unwrap();
        assert_eq!(output["timezone"], zone);
        let time = output["time"].as_str().unwrap();
        let utc: i64 = time[11..13].parse::<i64>().unwrap() * 60 + time[14..16].parse::<i64>().unwrap();
        let there = minutes(output["formatted"].as_str().unwrap());
        assert_eq!(there, (utc + offset).rem_euclid(24 * 60), "{output}");
    }
    let output = call(&gateway, &space, "get_current_time", json!({})).await.unwrap();
    assert_eq!(output["timezone"], "UTC");
    let error =
        call(&gateway, &space, "get_current_time", json!({"timezone": "Mars/Base"})).await.unwrap_err();
    assert!(error.starts_with("Tool get_current_time failed: RangeError: Invalid time zone"), "{error}");
    // Parameters are checked as everywhere.
    let error = call(&gateway, &space, "get_current_time", json!({"timezone": 7})).await.unwrap_err();
    assert!(error.contains("timezone"), "{error}");
}

#[tokio::test]
async fn h65_a_request_cannot_bring_a_tool_under_the_name_of_a_plugins_tool() {
    let gateway = Gateway::start().await;
    install(&gateway, &time_plugin()).await;
    let space = space_with(&gateway, json!(["dev-time-plugin"])).await;
    let tool = json!({"name": "get_current_time", "description": "Mine", "parameters": {"type": "object", "properties": {}}});
    let said = json!([{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]);
    let chat = json!({"id": "chat", "agent": "clock", "messages": said, "clientTools": [tool]});
    let refused = gateway.secret(Method::POST, "/api/chat").json(&chat).send().await.unwrap();
    assert_eq!(refused.status(), 409);
    assert!(refused.text().await.unwrap().contains("The tool name get_current_time belongs to a tool"));
    let message = json!({"content": "hi", "clientTools": [tool]});
    let path = format!("/api/smart-spaces/{space}/messages");
    let (status, body) = ask(gateway.user("ann", Method::POST, &path).json(&message)).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (409, &json!("tool_name_conflict")));
    // Nothing was changed, and the plugin's own tool runs.
    assert_eq!(gateway.get("/api/runs").await["runs"], json!([]));
    assert!(call(&gateway, &space, "get_current_time", json!({})).await.is_ok());
}

#[tokio::test]
async fn h58_production_refuses_what_nobody_signed_and_development_says_so() {
    let gateway = production(&[]).await;
    let (status, body) = install(&gateway, &time_plugin()).await;
    assert_eq!((status, &body["error"]["code"]), (422, &json!("plugin_refused")));
    assert_eq!(message(&body), "Unsigned plugin rejected in production: dev-time-plugin");
    let log = gateway.log();
    let line = log.lines().find(|line| line.contains("Unsigned plugin rejected in production"));
    assert!(line.unwrap().contains("plugin=dev-time-plugin"), "{log}");

    let development = Gateway::start().await;
    let (status, body) = install(&development, &time_plugin()).await;
    assert_eq!((status, &body["plugin"]["verified"]), (200, &json!(false)));
    assert!(body["plugin"]["warning"].as_str().unwrap().contains("arbitrary code"), "{body}");
    let space = space_with(&development, json!([{"id": "dev-time-plugin"}])).await;
    assert!(call(&development, &space, "get_current_time", json!({})).await.is_ok());
    // Its data folder does not become trusted by a change of the mode.
    let (_, _, folder) = development.terminate();
    let strict = Gateway::start_with(folder, &[("TOOLYARD_MODE", "production")]).await;
    let error = call(&strict, &space, "get_current_time", json!({})).await.unwrap_err();
    assert_eq!(
        error,
        "Tool get_current_time is not available: Unsigned plugin rejected in production: dev-time-plugin"
    );
}

#[tokio::test]
async fn h59_a_plugin_is_submitted_reviewed_signed_published_and_installed() {
    let gateway = production(&[]).await;
    fine(gateway.secret(Method::PUT, "/api/curators/acme").json(&json!({"plugins": ["dev-time-plugin"]})))
        .await;
    let made = gateway.post("/api/curators/acme/keys", json!({})).await;
    assert_eq!(
        (&made["curator"]["keys"][0]["held"], made["curator"]["keys"][0].get("privateKey")),
        (&json!(true), None)
    );
    let submitted = gateway.post("/api/plugins", time_plugin()).await;
    assert_eq!(
        (&submitted["version"]["state"], &submitted["report"]["findings"]),
        (&json!("submitted"), &json!([]))
    );
    let sign = json!({"plugin": "dev-time-plugin", "version": "1.0.0", "curatorId": "acme"});
    let signing = |body: &Value| gateway.secret(Method::POST, "/api/plugins/sign").json(body);
    let (status, body) = ask(signing(&sign)).await;
    assert_eq!(
        (status.as_u16(), message(&body)),
        (409, "Plugin dev-time-plugin 1.0.0 is not approved: review it first")
    );
    let path = "/api/plugins/dev-time-plugin/versions/1.0.0";
    let publish = || gateway.secret(Method::POST, &format!("{path}/publish")).json(&json!({}));
    assert_eq!(ask(publish()).await.0, 409);
    let named = || gateway.secret(Method::POST, "/api/plugins/dev-time-plugin/install").json(&json!({}));
    assert_eq!(ask(named()).await.0, 404, "what is not published is not there");
    gateway.post(&format!("{path}/review"), json!({"decision": "approve", "note": "read it"})).await;

    // Another key of the tenant is no curator.
    let other = gateway.post("/api/keys", json!({"kind": "secret"})).await;
    let theirs = gateway
        .bare(Method::POST, "/api/plugins/sign")
        .header("x-secret-key", other["key"].as_str().unwrap());
    assert_eq!(ask(theirs.json(&sign)).await.0, 403);

    let signed = fine(signing(&sign)).await;
    assert_eq!(
        (&signed["version"]["state"], &signed["plugin"]["curatorId"]),
        (&json!("signed"), &json!("acme"))
    );
    assert_eq!(fine(publish()).await["version"]["state"], "published");
    let done = fine(named()).await;
    assert_eq!((&done["plugin"]["verified"], &done["plugin"]["version"]), (&json!(true), &json!("1.0.0")));

    // Users see who vouches for it, and nothing of its code (row H60).
    new_user(&gateway, "ann").await;
    let seen = fine(gateway.user("ann", Method::GET, "/api/plugins")).await;
    let plugin = &seen["plugins"][0];
    assert_eq!((&plugin["installed"]["verified"], &plugin["versions"]), (&json!(true), &json!([])));
    assert!(!seen.to_string().contains("toISOString"));
    // Whoever has the public key can check the document alone.
    let curator = fine(gateway.user("ann", Method::GET, "/api/curators/acme")).await;
    assert!(curator["curator"].get("signers").is_none());
    let key = &curator["curator"]["keys"][0];
    let file = json!({"curatorId": "acme", "algorithm": key["algorithm"], "publicKey": key["publicKey"], "keyId": key["id"]});
    let folder = gateway.folder.path();
    std::fs::write(folder.join("acme.pub"), file.to_string()).unwrap();
    std::fs::write(folder.join("signed.json"), signed["plugin"].to_string()).unwrap();
    assert_eq!(cli(folder, &["plugin", "verify", "signed.json", "--key", "acme.pub"])["genuine"], true);
    let lines = gateway.get("/api/audit").await.to_string();
    for action in
        ["plugin.submit", "plugin.approve", "plugin.sign", "plugin.publish", "plugin.install", "curator.key"]
    {
        assert!(lines.contains(action), "{action}: {lines}");
    }
}

#[tokio::test]
async fn h59_the_audit_comes_before_the_signature() {
    let gateway = Gateway::start().await;
    fine(gateway.secret(Method::PUT, "/api/curators/acme").json(&json!({"plugins": ["*"]}))).await;
    gateway.post("/api/curators/acme/keys", json!({"algorithm": "rsa-pkcs1-sha256"})).await;
    let sign =
        |plugin: Value| gateway.secret(Method::POST, "/api/plugins/sign").json(&json!({ "plugin": plugin }));
    let evil = changed(|p| p["tools"][0]["executorCode"] = json!("return eval(args.code)"));
    let (status, body) = ask(sign(evil)).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (422, &json!("plugin_refused")));
    assert_eq!(
        message(&body),
        "The audit forbids it: eval makes code out of text in get_current_time, line 1 (makes-code)"
    );
    // A whole document is submitted, approved and signed by its curator at once.
    let first = fine(sign(time_plugin())).await;
    assert_eq!(first["version"]["state"], "signed");
    let second = changed(|p| {
        p["version"] = json!("1.1.0");
        p["permissions"] = json!({"fetch": ["api.example.com"]});
    });
    let second = fine(sign(second)).await;
    assert_eq!(second["report"]["changes"]["since"], "1.0.0");
    assert_eq!(second["report"]["findings"][0]["rule"], "new-permissions");
    // A signed version is never another one.
    let other = changed(|p| p["name"] = json!("Another"));
    let (status, body) = ask(sign(other)).await;
    assert_eq!(status.as_u16(), 422, "{body}");
    // A curator signs only what it is trusted with.
    fine(gateway.secret(Method::PUT, "/api/curators/acme").json(&json!({"plugins": ["other-*"]}))).await;
    let (status, body) = ask(sign(changed(|p| p["version"] = json!("1.2.0")))).await;
    assert_eq!(
        (status.as_u16(), message(&body)),
        (422, "Plugin dev-time-plugin: the curator acme may not sign this plugin")
    );
}

#[tokio::test]
async fn h49_a_new_version_replaces_the_old_one_and_names_are_kept_apart() {
    let gateway = Gateway::start().await;
    let with = |version: &str| changed(|p| p["version"] = json!(version));
    assert_eq!(install(&gateway, &with("1.0.0")).await.0, 200);
    assert_eq!(install(&gateway, &with("1.1.0")).await.0, 200, "its own names are no conflict");
    let (status, body) = install(&gateway, &changed(|p| p["id"] = json!("another"))).await;
    assert_eq!((status, message(&body)), (409, "Tool name conflict: get_current_time already exists"));
    let (status, body) = install(&gateway, &json!({"id": "x", "name": "X", "tools": []})).await;
    assert_eq!((status, message(&body)), (400, "Invalid plugin: missing required fields"));
    assert_eq!(body["error"]["code"], "invalid_plugin");
    let needs = changed(|p| {
        p["version"] = json!("1.2.0");
        p["requires"] = json!({"toolyard": ">=99"});
    });
    assert!(message(&install(&gateway, &needs).await.1).contains("needs toolyard >=99"));
    // A tool whose code is none is left out; the others work (row H51).
    let half = changed(|p| {
        p["version"] = json!("1.3.0");
        let mut broken = p["tools"][0].clone();
        (broken["name"], broken["executorCode"]) = (json!("broken"), json!("return ("));
        p["tools"].as_array_mut().unwrap().push(broken);
    });
    assert_eq!(install(&gateway, &half).await.1["plugin"]["broken"], json!(["broken"]));
    let space = space_with(&gateway, json!(["dev-time-plugin"])).await;
    assert!(call(&gateway, &space, "get_current_time", json!({})).await.is_ok());
    assert_eq!(call(&gateway, &space, "broken", json!({})).await.unwrap_err(), "Tool: broken not found");
    // Another version than the agent wants gives nothing.
    let config = agent(&json!(["dev-time-plugin@^2"]));
    gateway.post("/api/agents", json!({ "config": config })).await;
    let error = call(&gateway, &space, "get_current_time", json!({})).await.unwrap_err();
    assert!(error.ends_with("is installed as 1.3.0, the agent wants ^2"), "{error}");
    let gone = gateway.secret(Method::DELETE, "/api/plugins/dev-time-plugin").send().await.unwrap();
    assert_eq!(gone.status(), 204);
}

#[tokio::test]
async fn x12_the_gateway_accepts_nothing_that_is_not_genuine() {
    let gateway = production(&[("TOOLYARD_PLUGINS_THRESHOLD", "2")]).await;
    let folder = gateway.folder.path();
    let one = signed_by(folder, "acme", &time_plugin());
    let two = signed_by(folder, "beta", &one);
    trust(&gateway, "acme", "*").await;
    let (status, body) = install(&gateway, &two).await;
    assert_eq!(
        (status, message(&body)),
        (422, "Plugin dev-time-plugin has 1 signatures that count, 2 curators are needed")
    );
    trust(&gateway, "beta", "*").await;
    let edit = |path: &str, new: Value| {
        let mut document = two.clone();
        *document.pointer_mut(path).unwrap() = new;
        document
    };
    let again = json!([{"curatorId": "acme", "signature": two["signature"]}]);
    for forged in [
        one.clone(),
        edit("/tools/0/executorCode", json!("return 'evil'")),
        edit("/tools/0/parameters", json!({"type": "object", "properties": {}})),
        edit("/signature", two["signatures"][0]["signature"].clone()),
        edit("/signatures", again),
        edit("/signatures", json!([])),
        edit("/contentHash", json!("0")),
        edit("/version", json!("9.9.9")),
    ] {
        let (status, body) = install(&gateway, &forged).await;
        assert_eq!((status, &body["error"]["code"]), (422, &json!("plugin_refused")), "{body}");
    }
    // Two readers would read these differently.
    let text = two.to_string();
    for bad in [
        text.replacen('{', "{\"id\":\"evil\",", 1),
        format!("{text}{text}"),
        text.replacen("\"type\":\"object\"", "\"maxProperties\":9007199254740993,\"type\":\"object\"", 1),
    ] {
        let request = gateway.secret(Method::POST, "/api/plugins/install");
        let (status, body) = ask(request.header("content-type", "application/json").body(bad)).await;
        assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_plugin")), "{body}");
    }
    assert_eq!(gateway.get("/api/plugins").await["plugins"], json!([]));
    assert_eq!(install(&gateway, &two).await.0, 200);
}

#[tokio::test]
async fn x12_an_older_version_does_not_come_back_not_even_after_a_removal() {
    let gateway = production(&[]).await;
    let folder = gateway.folder.path();
    let old = signed_by(folder, "acme", &time_plugin());
    let new = signed_by(folder, "acme", &changed(|p| p["version"] = json!("1.0.1")));
    trust(&gateway, "acme", "*").await;
    assert_eq!(install(&gateway, &new).await.0, 200);
    assert_eq!(install(&gateway, &new).await.0, 200, "the same again is no step back");
    let rolled_back = "Plugin dev-time-plugin 1.0.0 is older than 1.0.1, which was seen here";
    assert_eq!(message(&install(&gateway, &old).await.1), rolled_back);
    gateway.secret(Method::DELETE, "/api/plugins/dev-time-plugin").send().await.unwrap();
    assert_eq!(message(&install(&gateway, &old).await.1), rolled_back);
    let other = signed_by(
        folder,
        "acme",
        &changed(|p| {
            p["version"] = json!("1.0.1");
            p["name"] = json!("Another");
        }),
    );
    assert!(message(&install(&gateway, &other).await.1).contains("a change is a new version"));
}

#[tokio::test]
async fn x12_a_revocation_counts_from_the_next_call_on() {
    let gateway = production(&[]).await;
    let folder = gateway.folder.path();
    // Its name sounds risky, so it asks first.
    let risky = changed(|p| {
        p["id"] = json!("risky");
        p["tools"][0]["name"] = json!("delete_everything");
    });
    let (time, risky) = (signed_by(folder, "acme", &time_plugin()), signed_by(folder, "acme", &risky));
    trust(&gateway, "acme", "*").await;
    assert_eq!(install(&gateway, &time).await.0, 200);
    assert_eq!(install(&gateway, &risky).await.0, 200);
    let space = space_with(&gateway, json!(["dev-time-plugin", "risky"])).await;
    assert!(call(&gateway, &space, "get_current_time", json!({})).await.is_ok());

    // A call that waits for a yes while its plugin is revoked.
    let path = format!("/api/smart-spaces/{space}/messages");
    let posted =
        fine(gateway.user("ann", Method::POST, &path).json(&json!({"content": "call delete_everything {}"})))
            .await;
    let run = posted["runs"][0]["runId"].as_str().unwrap().to_owned();
    let wait = loop {
        let list = gateway.get(&format!("/api/waits?runId={run}")).await;
        if let Some(wait) = list["waits"][0]["id"].as_str() {
            break wait.to_owned();
        }
        tokio::task::yield_now().await;
    };
    gateway.post("/api/plugins/revoke", json!({"plugin": "risky", "reason": "it deletes everything"})).await;
    gateway.post(&format!("/api/waits/{wait}/answer"), json!({"decision": "allow"})).await;
    let stream = gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
    let events = crate::yard::read_all(stream).await;
    let error =
        events.iter().find(|e| e.event.as_deref() == Some("tool-error")).map(crate::yard::data).unwrap();
    assert_eq!(error["error"], "Plugin risky was revoked: it deletes everything");

    // The others go on, until their key is revoked.
    assert!(call(&gateway, &space, "get_current_time", json!({})).await.is_ok());
    let curators = gateway.get("/api/curators").await;
    let key = &curators["curators"][0]["keys"][0]["id"];
    gateway.post("/api/plugins/revoke", json!({"key": key, "reason": "stolen"})).await;
    let error = call(&gateway, &space, "get_current_time", json!({})).await.unwrap_err();
    assert_eq!(
        error,
        "Tool get_current_time is not available: Plugin dev-time-plugin: the key of the curator acme was revoked: stolen"
    );
    let seen = gateway.get("/api/plugins/dev-time-plugin").await;
    assert_eq!(
        (&seen["plugin"]["installed"]["usable"], &seen["plugin"]["installed"]["verified"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(gateway.get("/api/plugins/revocations").await["revocations"].as_array().unwrap().len(), 2);
    let (status, _) =
        ask(gateway.secret(Method::POST, "/api/plugins/revoke").json(&json!({"reason": "x"}))).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn h55_a_plugin_that_is_switched_off_stays_installed_and_runs_nothing() {
    let gateway = Gateway::start().await;
    assert_eq!(install(&gateway, &time_plugin()).await.0, 200);
    let space = space_with(&gateway, json!(["dev-time-plugin"])).await;
    let switch = async |on: bool| {
        let path = "/api/plugins/dev-time-plugin";
        let done = fine(gateway.secret(Method::PATCH, path).json(&json!({"enabled": on}))).await;
        (done["plugin"]["enabled"].clone(), done["plugin"]["usable"].clone())
    };
    assert_eq!(switch(false).await, (json!(false), json!(false)));
    let error = call(&gateway, &space, "get_current_time", json!({})).await.unwrap_err();
    assert_eq!(error, "Tool get_current_time is not available: Plugin dev-time-plugin is switched off");
    // Another version of it does not switch it on.
    let newer = changed(|p| p["version"] = json!("9.0.0"));
    assert_eq!(install(&gateway, &newer).await.0, 200);
    assert!(call(&gateway, &space, "get_current_time", json!({})).await.is_err());
    assert_eq!(switch(true).await, (json!(true), json!(true)));
    assert!(call(&gateway, &space, "get_current_time", json!({})).await.is_ok());
    let none = gateway.secret(Method::PATCH, "/api/plugins/none").json(&json!({"enabled": true}));
    assert_eq!(ask(none).await.0.as_u16(), 404);
    let ann = gateway.user("ann", Method::PATCH, "/api/plugins/dev-time-plugin");
    assert_eq!(ask(ann.json(&json!({"enabled": false}))).await.0.as_u16(), 401);
    let audit = gateway.get("/api/audit").await.to_string();
    assert!(audit.contains("plugin.switch_off") && audit.contains("plugin.switch_on"), "{audit}");
}

#[tokio::test]
async fn x12_code_that_is_swapped_in_the_database_does_not_run() {
    let gateway = production(&[]).await;
    let document = signed_by(gateway.folder.path(), "acme", &time_plugin());
    trust(&gateway, "acme", "*").await;
    assert_eq!(install(&gateway, &document).await.0, 200);
    let space = space_with(&gateway, json!(["dev-time-plugin"])).await;
    assert!(call(&gateway, &space, "get_current_time", json!({})).await.is_ok());
    let db = rusqlite::Connection::open(gateway.folder.path().join("data/toolyard.db")).unwrap();
    db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let swap = "UPDATE plugins SET document = replace(document, 'return {', 'return {evil: 1,')";
    assert_eq!(db.execute(swap, []).unwrap(), 1);
    let error = call(&gateway, &space, "get_current_time", json!({})).await.unwrap_err();
    assert!(error.ends_with("Plugin dev-time-plugin is not what was installed"), "{error}");
    // Not even when the thief also mends the hash beside it.
    let hash = {
        let text: String = db.query_row("SELECT document FROM plugins", [], |row| row.get(0)).unwrap();
        let mut body: Value = serde_json::from_str(&text).unwrap();
        for field in ["signature", "contentHash"] {
            body.as_object_mut().unwrap().remove(field);
        }
        // All of its keys are ASCII and it has no fractions: this is its canonical form.
        toolyard_protocol::Hash::of(format!("toolyard-plugin-v1\n{body}").as_bytes())
    };
    db.execute("UPDATE plugins SET hash = ?1", [hash.as_str()]).unwrap();
    let error = call(&gateway, &space, "get_current_time", json!({})).await.unwrap_err();
    assert!(error.ends_with("Content hash mismatch for plugin: dev-time-plugin"), "{error}");
}
