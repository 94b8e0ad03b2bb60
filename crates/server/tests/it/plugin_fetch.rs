//! What the code of a plugin reaches, over the whole gateway.

use serde_json::{Value, json};

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, message};
use crate::plugins::{changed, install, space_with};
use crate::samples::call;

fn fetching(far: &FarSide, code: &str) -> Value {
    changed(|p| {
        p["permissions"] = json!({"fetch": [far.address]});
        p["tools"][0]["name"] = json!("look_up");
        p["tools"][0]["executorCode"] = json!(code);
        p["tools"][0]["parameters"] = json!({"type": "object", "properties": {"url": {"type": "string"}}});
    })
}

#[tokio::test]
async fn h64_fetch_reaches_the_hosts_of_the_manifest_and_only_if_the_operator_allows() {
    let far = FarSide::start().await;
    let code = "const answer = await fetch(args.url, {method: 'POST', headers: {'x-a': '1'}, body: 'b'});\n\
        return {status: answer.status, body: await answer.json(), cookie: answer.headers.get('set-cookie')};";
    let plugin = fetching(&far, code);
    let strict =
        Gateway::start_with(Folder::new(), &[("TOOLYARD_ALLOW_PRIVATE_NETWORK", &far.address)]).await;
    let (status, body) = install(&strict, &plugin).await;
    let said = format!(
        "Plugin dev-time-plugin asks for fetch to {}, which the operator does not allow ([plugins] fetch)",
        far.address
    );
    assert_eq!((status, message(&body)), (422, said.as_str()));

    let other = FarSide::start().await;
    let inside = format!("{},{}", far.address, other.address);
    let env = [("TOOLYARD_ALLOW_PRIVATE_NETWORK", inside.as_str()), ("TOOLYARD_PLUGINS_FETCH", &far.address)];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    assert_eq!(install(&gateway, &plugin).await.0, 200);
    let space = space_with(&gateway, json!(["dev-time-plugin"])).await;
    let url = format!("{}/a?b=1", far.url());
    let output = call(&gateway, &space, "look_up", json!({ "url": url })).await.unwrap();
    assert_eq!((&output["status"], &output["cookie"]), (&json!(200), &Value::Null));
    assert_eq!(output["body"]["line"], "POST /a?b=1 HTTP/1.1");
    let asked = far.asked();
    assert_eq!((asked[0].header("x-a"), asked[0].body.as_str()), (Some("1"), "b"));
    // Another host is not reached, although the operator's network has it.
    let error = call(&gateway, &space, "look_up", json!({"url": other.url()})).await.unwrap_err();
    assert!(error.contains("not one of the hosts asked for"), "{error}");
    assert!(other.asked().is_empty());
    let error = call(&gateway, &space, "look_up", json!({"url": "file:///etc/passwd"})).await.unwrap_err();
    assert!(error.starts_with("Tool look_up failed: "), "{error}");
}

#[tokio::test]
async fn h64_a_plugin_without_the_permission_has_no_fetch_and_asks_nobody() {
    let gateway = Gateway::start().await;
    let space = space_with(&gateway, json!(["dev-time-plugin"])).await;
    for (code, said) in [
        ("return await fetch('http://127.0.0.1/')", "fetch is not defined"),
        ("return await host('fetch', {})", "host is not defined"),
        ("while (true) {}", "longer than its limit of 5000 ms"),
    ] {
        let plugin = changed(|p| p["tools"][0]["executorCode"] = json!(code));
        assert_eq!(install(&gateway, &plugin).await.0, 200, "its author may still change it");
        let error = call(&gateway, &space, "get_current_time", json!({})).await.unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
