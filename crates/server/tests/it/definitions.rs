//! Tools that a request brings, over HTTP: H1, H5, H17–H21, H65, L1–L9, L30,
//! SPEC part 2 rows 1–4 and 15.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, ask, message};
use crate::yard::{Yard, data};

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "Does it.", "parameters": {"type": "object",
        "properties": {"q": {"type": "string"}}, "required": ["q"]}})
}

/// Ann says something and brings tools.
async fn say(yard: &Yard, user: Option<&str>, text: &str, tools: Value) -> (u16, Value) {
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let body = json!({"content": text, "clientTools": tools});
    let request = match user {
        Some(user) => yard.gateway.user(user, Method::POST, &path).json(&body),
        None => {
            let mut body = body;
            body["entityId"] = json!(yard.ann);
            yard.gateway.secret(Method::POST, &path).json(&body)
        }
    };
    let (status, body) = ask(request).await;
    (status.as_u16(), body)
}

async fn messages(yard: &Yard) -> usize {
    let list = yard.gateway.get(&format!("/api/smart-spaces/{}/messages", yard.space)).await;
    list["messages"].as_array().unwrap().len()
}

#[tokio::test]
async fn h1_h5_a_tool_of_a_request_is_called_and_answered_by_the_client() {
    let yard = Yard::new().await;
    let shapes = [
        tool("mine"),
        json!({"name": "mine", "description": "Does it.", "inputSchema": tool("mine")["parameters"]}),
        json!({"type": "function", "function": tool("mine")}),
    ];
    for shape in shapes {
        let (status, posted) = say(&yard, Some("ann"), "call mine {\"q\":\"x\"}", json!([shape])).await;
        assert_eq!(status, 201, "{posted}");
        let run = posted["runs"][0]["runId"].as_str().unwrap().to_owned();
        let wait = yard.wait_of(&run).await;
        assert_eq!((&wait["toolName"], &wait["payload"]), (&json!("mine"), &json!({"q": "x"})));
        yard.submit(Some("ann"), &run, json!({"callId": wait["toolCallId"], "result": "done"})).await;
        yard.finish(&run).await;
    }
    // Nothing stays: the next message has no such tool (H15).
    let run = yard.say("call mine {\"q\":\"x\"}").await;
    let events = yard.finish(&run).await;
    let failed = events.iter().find(|e| e.event.as_deref() == Some("tool-error")).map(data).unwrap();
    assert_eq!(failed["error"], "Tool: mine not found");
}

#[tokio::test]
async fn l1_l8_h17_h18_h21_bad_definitions_are_refused_and_nothing_is_said() {
    let yard = Yard::new().await;
    let before = messages(&yard).await;
    let schema = |properties: Value| json!({"type": "object", "properties": properties});
    let with = |parameters: Value| json!([{"name": "a", "description": "d", "parameters": parameters}]);
    let deep = (0..5).fold(json!({"type": "string"}), |inner, _| schema(json!({"a": inner})));
    let wide: Value = (0..21)
        .map(|i| (format!("p{i}"), json!({"type": "string"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let cases = [
        (json!([tool("my-tool")]), None),
        (json!([tool("1abc")]), None),
        (json!([tool("")]), None),
        (json!([tool("a"), tool("a")]), None),
        (json!([{"name": "a", "description": "", "parameters": schema(json!({}))}]), None),
        (
            json!([{"name": "a", "description": "d".repeat(1025), "parameters": schema(json!({}))}]),
            Some(1024),
        ),
        (with(json!({"type": "string"})), None),
        (with(json!({"type": "object"})), None),
        (with(schema(json!({"a": {"type": "date"}}))), None),
        (with(schema(json!({"a": {"$ref": "#/$defs/x"}}))), None),
        (with(deep), Some(5)),
        (with(schema(wide)), Some(20)),
        (json!(["tool"]), None),
    ];
    for (tools, limit) in cases {
        let (status, body) = say(&yard, Some("ann"), "hello", tools.clone()).await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_tool_definitions")), "{tools}");
        assert!(message(&body).starts_with("Invalid client tool definitions: "), "{body}");
        assert_eq!(body["error"]["limit"].as_u64(), limit, "{body}");
    }
    assert_eq!(messages(&yard).await, before);
}

#[tokio::test]
async fn h20_row2_the_number_of_tools_depends_on_the_key() {
    let yard = Yard::new().await;
    let tools = |count: usize| (0..count).map(|i| tool(&format!("t{i}"))).collect::<Value>();
    assert_eq!(say(&yard, Some("ann"), "hello", tools(10)).await.0, 201);
    let (status, body) = say(&yard, Some("ann"), "hello", tools(11)).await;
    assert_eq!((status, &body["error"]["limit"]), (400, &json!(10)));
    assert_eq!(
        message(&body),
        "Invalid client tool definitions: Too many tools: 11 given, at most 10 allowed"
    );
    assert_eq!(say(&yard, None, "hello", tools(128)).await.0, 201);
    let (status, body) = say(&yard, None, "hello", tools(129)).await;
    assert_eq!((status, &body["error"]["limit"]), (400, &json!(128)));

    let env = [("TOOLYARD_LIMITS_PUBLIC_TOOLS", "2")];
    let yard = Yard::on(Gateway::start_with(Folder::new(), &env).await).await;
    assert_eq!(say(&yard, Some("ann"), "hello", tools(2)).await.0, 201);
    assert_eq!(say(&yard, Some("ann"), "hello", tools(3)).await.1["error"]["limit"], 2);
}

#[tokio::test]
async fn h65_row15_a_name_of_the_agent_is_a_conflict_or_gets_a_prefix() {
    let yard = Yard::new().await;
    let before = messages(&yard).await;
    let (status, body) = say(&yard, Some("ann"), "call look {\"q\":\"x\"}", json!([tool("look")])).await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("tool_name_conflict")), "{body}");
    assert_eq!(messages(&yard).await, before);
    let mut config = crate::yard::agent("assistant");
    config["clientTools"] = json!({"onConflict": "prefix"});
    yard.gateway.post("/api/agents", json!({"config": config})).await;
    let both = "call look {\"q\":\"x\"}\ncall client_look {\"q\":\"y\"}";
    let (status, posted) = say(&yard, Some("ann"), both, json!([tool("look")])).await;
    assert_eq!(status, 201, "{posted}");
    let run = posted["runs"][0]["runId"].as_str().unwrap().to_owned();
    let wait = yard.wait_of(&run).await;
    // The gateway's own tool ran on the gateway; the client's waits under its other name.
    assert_eq!((&wait["toolName"], &wait["payload"]), (&json!("client_look"), &json!({"q": "y"})));
    yard.submit(Some("ann"), &run, json!({"callId": wait["toolCallId"], "result": 1})).await;
    yard.finish(&run).await;
    // The operator's word, for agents that say nothing.
    let env = [("TOOLYARD_CLIENT_TOOLS_ON_CONFLICT", "prefix")];
    let yard = Yard::on(Gateway::start_with(Folder::new(), &env).await).await;
    assert_eq!(say(&yard, Some("ann"), "hello", json!([tool("look")])).await.0, 201);
}
