//! The client tool provider of the document on A2A.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_client::{
    ClientToolCall, ClientToolProvider, FunctionCall, FunctionResult, Limits, NameRule, TaskContext,
    safe_validate_tool_definitions, validate_tool_definitions,
};

fn weather() -> Value {
    json!({"name": "get_weather", "description": "The weather.", "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "units": {"type": "string", "enum": ["c", "f"]}},
        "required": ["city"]}})
}

fn strict() -> Value {
    let mut tool = weather();
    tool["name"] = json!("strict-tool_1");
    tool["parameters"]["additionalProperties"] = json!(false);
    tool
}

fn call(name: &str, arguments: &str) -> ClientToolCall {
    let function = FunctionCall { name: name.to_owned(), arguments: arguments.to_owned() };
    ClientToolCall { id: "c1".to_owned(), kind: "function".to_owned(), function }
}

fn provider() -> ClientToolProvider {
    ClientToolProvider::new(&[weather(), strict()], |call, context| async move {
        if call.function.arguments.contains("nowhere") {
            return Err("the client went away".to_owned());
        }
        Ok(FunctionResult::of(&call, json!({"task": context.task_id})))
    })
    .unwrap()
}

#[test]
fn l1_l9_l24_definitions_are_checked_once_and_errors_begin_as_documented() {
    let names: Vec<String> = provider().get_tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["get_weather", "strict-tool_1"], "l2: hyphens are fine here; l10");
    for (bad, why) in [
        (
            json!({"name": "", "description": "d", "parameters": {"type": "object", "properties": {}}}),
            "no name",
        ),
        (
            json!({"name": "a b", "description": "d", "parameters": {"type": "object", "properties": {}}}),
            "invalid name",
        ),
        (
            json!({"name": "a", "description": "", "parameters": {"type": "object", "properties": {}}}),
            "no description",
        ),
        (json!({"name": "a", "description": "d", "parameters": {"type": "string"}}), "object"),
    ] {
        let made =
            ClientToolProvider::new(&[bad], |call, _| async move { Ok(FunctionResult::of(&call, json!(1))) });
        let text = made.unwrap_err().to_string();
        assert!(text.starts_with("Invalid client tool definitions: ") && text.contains(why), "{text}");
    }
    let twice = [weather(), weather()];
    let limits = Limits::request();
    let text = validate_tool_definitions(&twice, &limits, NameRule::Config).unwrap_err().to_string();
    assert!(text.contains("Duplicate tool names: get_weather"), "{text}");
    assert!(!safe_validate_tool_definitions(&json!(twice), &limits, NameRule::Config).success());
    assert!(safe_validate_tool_definitions(&json!([weather()]), &limits, NameRule::Config).success());
}

#[tokio::test]
async fn l11_l12_l13_l25_a_call_goes_to_the_callback_and_trouble_is_its_result() {
    let provider = provider();
    let context = TaskContext { task_id: "task-7".to_owned(), ..TaskContext::default() };
    let fine = provider.execute(&call("get_weather", "{\"city\":\"Berlin\"}"), &context).await;
    assert_eq!(
        serde_json::to_value(&fine).unwrap(),
        json!({"toolCallId": "c1", "toolName": "get_weather", "success": true, "result": {"task": "task-7"}})
    );
    for (name, arguments, error) in [
        ("unknown_tool", "{}", "Tool unknown_tool not found in client tools"),
        ("get_weather", "{\"city\":\"nowhere\"}", "the client went away"),
    ] {
        let failed = provider.execute(&call(name, arguments), &context).await;
        assert_eq!((failed.success, failed.error.as_deref()), (false, Some(error)));
    }
    let broken = provider.execute(&call("get_weather", "{city"), &context).await;
    assert!(broken.error.unwrap().starts_with("Invalid tool arguments JSON: "));
}

#[tokio::test]
async fn l32_a_client_that_takes_too_long_is_a_failure() {
    let slow = ClientToolProvider::new(&[weather()], |_, _| std::future::pending()).unwrap();
    let slow = slow.with_timeout(Duration::from_millis(20));
    let late = slow.execute(&call("get_weather", "{}"), &TaskContext::default()).await;
    assert_eq!(late.error.as_deref(), Some("Tool get_weather timed out after 20 ms"));
}

#[test]
fn l14_l15_l16_l17_l27_l28_arguments_are_judged_in_the_documented_words() {
    let provider = provider();
    let judge = |tool: &str, arguments: &str| {
        let verdict = provider.validate_tool_arguments(&call(tool, arguments));
        assert_eq!(verdict.valid, verdict.errors.is_none());
        verdict.errors.unwrap_or_default()
    };
    assert_eq!(judge("get_weather", "{\"city\":\"Berlin\",\"days\":3}"), Vec::<String>::new());
    assert_eq!(judge("get_weather", "{\"city\":\"Berlin\",\"more\":1}"), Vec::<String>::new(), "l17");
    assert_eq!(judge("get_weather", "{}"), ["Missing required parameter: city"]);
    assert_eq!(judge("strict-tool_1", "{\"city\":\"x\",\"more\":1}"), ["Unknown parameter: more"]);
    assert_eq!(
        judge("get_weather", "{\"city\":5}"),
        ["Parameter city has wrong type: expected string, got number"]
    );
    assert_eq!(
        judge("get_weather", "{\"city\":\"x\",\"days\":2.5}"),
        ["Parameter days must be an integer, got: 2.5"]
    );
    assert_eq!(
        judge("get_weather", "{\"city\":\"x\",\"units\":\"k\"}").len(),
        1,
        "l28: the whole schema counts"
    );
    assert!(judge("nobody", "{}")[0].contains("Tool nobody not found"));
    let read: ClientToolCall = serde_json::from_value(json!({"id": "c1", "type": "function",
        "function": {"name": "get_weather", "arguments": "{}"}}))
    .unwrap();
    assert_eq!(read, call("get_weather", "{}"));
}

/// Definitions are judged once, when the provider is made; a tool is found by
/// its name; whether arguments are judged is the caller's choice.
#[tokio::test]
async fn l26_definitions_are_judged_once_and_arguments_if_somebody_asks() {
    let limits = Limits::request();
    let many: Vec<Value> = (0..limits.max_tools)
        .map(|n| {
            let mut tool = weather();
            tool["name"] = json!(format!("tool_{n}"));
            tool
        })
        .collect();
    let provider = ClientToolProvider::new(&many, |call, _| async move {
        Ok(FunctionResult::of(&call, json!(call.function.name)))
    });
    let provider = provider.unwrap();
    drop(many);
    for n in [0, limits.max_tools / 2, limits.max_tools - 1] {
        // These arguments do not fit: whoever executes was not asked to judge them.
        let call = call(&format!("tool_{n}"), "{\"city\":5}");
        let done = provider.execute(&call, &TaskContext::default()).await;
        assert_eq!((done.success, done.result), (true, json!(format!("tool_{n}"))));
        assert!(!provider.validate_tool_arguments(&call).valid);
    }
}
