//! Tools and plugins of one program, without a gateway.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use toolyard_client::{
    CallContext, CallId, Client, ClientEvent, Failure, Plugin, PluginError, Tool, ToolCall, ToolDefinition,
    plugin, tool,
};

fn client() -> Client {
    Client::builder().base_url("http://127.0.0.1:9").build().unwrap()
}

fn answering(name: &str, value: Value) -> Arc<dyn Tool> {
    tool(name).describe("Answers.").run(move |_: Value, _: CallContext| {
        let value = value.clone();
        async move { Ok::<_, Failure>(value) }
    })
}

fn call(name: &str, args: Value) -> ToolCall {
    ToolCall::new(CallId::mint(), name, args)
}

#[tokio::test]
async fn h2_one_tool_is_registered_without_a_plugin() {
    let client = client();
    let add = tool("add")
        .describe("Adds.")
        .parameters(
            json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}),
        )
        .run(|(args,): (Value,), _cx: CallContext| async move { Ok::<_, Failure>(args) });
    // An executor reads its arguments as a type; what does not fit is an outcome.
    client.register_tool(add).unwrap();
    let outcome = client.execute(&call("add", json!({"a": 1}))).await.unwrap();
    assert!(outcome.unwrap_err().contains("the arguments cannot be read"));
    client.register_tool(answering("now", json!(5))).unwrap();
    assert_eq!(client.execute(&call("now", json!({}))).await.unwrap(), Ok(json!(5)));
    let again = client.register_tool(answering("now", json!(6))).unwrap_err();
    assert_eq!(again.to_string(), "Tool \"now\" is already registered");
    client.unregister_tool("now").unwrap();
    assert!(!client.has_executor("now") && client.has_executor("add"));
}

#[tokio::test]
async fn h24_h26_h28_h31_plugins_register_in_a_chain_and_tell_their_tools() {
    let client = client();
    assert_eq!(client.tool_definitions(), vec![]);
    let fired = Arc::new(AtomicUsize::new(0));
    let seen = fired.clone();
    let one = plugin("one", "1.0.0")
        .tool(answering("a", json!(1)))
        .tool(answering("b", json!(2)))
        .on_register(move |client| {
            let seen = seen.clone();
            async move {
                assert!(client.has_plugin("one"));
                seen.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        });
    client.register(one).await.unwrap().register(plugin("two", "0.1.0")).await.unwrap();
    assert_eq!(fired.load(Ordering::SeqCst), 1);
    assert_eq!(client.plugin_names(), ["one", "two"]);
    let names: Vec<String> = client.tool_definitions().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b"]);
}

/// Tools that are known only after `on_register` count.
struct Discovering(Mutex<Vec<Arc<dyn Tool>>>);

#[async_trait]
impl Plugin for Discovering {
    fn name(&self) -> &'static str {
        "discovering"
    }
    fn version(&self) -> &'static str {
        "1.0.0"
    }
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.lock().unwrap().clone()
    }
    async fn on_register(&self, _: &Client) -> Result<(), Failure> {
        self.0.lock().unwrap().push(answering("found", json!("here")));
        Ok(())
    }
}

#[tokio::test]
async fn h28_tools_that_are_discovered_at_registration_count() {
    let client = client();
    client.register(Discovering(Mutex::default())).await.unwrap();
    assert_eq!(client.execute(&call("found", json!({}))).await.unwrap(), Ok(json!("here")));
}

#[tokio::test]
async fn h29_what_is_wrong_with_a_plugin_is_refused_in_the_documented_words() {
    let client = client();
    client.register(plugin("p1", "1.0.0").tool(answering("t", json!(1)))).await.unwrap();
    let nameless = |name: &str| ToolDefinition { name: name.to_owned(), ..tool("x").describe("d").declare() };
    let bad_name = |name: &str| {
        format!(
            "Plugin \"x\": Invalid tool name \"{name}\". Must start with a letter and contain only alphanumeric characters and underscores (max 64 chars)."
        )
    };
    let x = || plugin("x", "1.0.0");
    let cases = [
        (plugin("", "1.0.0"), "Plugin must have a name".to_owned()),
        (plugin("x", ""), "Plugin \"x\" must have a version".to_owned()),
        (plugin("p1", "2.0.0"), "Plugin \"p1\" is already registered".to_owned()),
        (x().declare(nameless("1abc")), bad_name("1abc")),
        (x().declare(nameless("my-tool")), bad_name("my-tool")),
        (x().declare(tool("a").declare()), "Plugin \"x\": Tool \"a\" must have a description".to_owned()),
        (
            x().executor(answering("z", json!(1))),
            "Plugin \"x\": Executor \"z\" has no matching tool definition".to_owned(),
        ),
        (
            x().tool(answering("t", json!(1))),
            "Plugin \"x\": Tool \"t\" conflicts with tool from plugin \"p1\"".to_owned(),
        ),
        (
            x().declare(nameless("a")).declare(nameless("a")),
            "Plugin \"x\": Tool \"a\" is defined twice".to_owned(),
        ),
    ];
    for (refused, text) in cases {
        assert_eq!(client.register(refused).await.unwrap_err().to_string(), text);
    }
    let no_object = x().declare(tool("a").describe("d").parameters(json!({"type": "string"})).declare());
    let text = client.register(no_object).await.unwrap_err().to_string();
    assert!(text.starts_with("Plugin \"x\": Tool \"a\" parameters must be an object schema"), "{text}");
    assert_eq!(client.plugin_names(), ["p1"], "a refused plugin leaves nothing behind");
    assert_eq!(client.tool_definitions().len(), 1);
    client.register(x().tool(answering("other", json!(1)))).await.unwrap();
}

#[tokio::test]
async fn h30_unregistering_removes_the_tools_and_fires_the_hook_once() {
    let client = client();
    let gone = Arc::new(AtomicUsize::new(0));
    let seen = gone.clone();
    let one = plugin("one", "1.0.0").tool(answering("a", json!(1))).on_unregister(move || {
        let seen = seen.clone();
        async move {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    client.register(one).await.unwrap();
    client.unregister("one").await.unwrap();
    assert_eq!((gone.load(Ordering::SeqCst), client.has_executor("a")), (1, false));
    assert_eq!(client.unregister("one").await.unwrap_err().to_string(), "Plugin \"one\" is not registered");
    // A hook that fails leaves nothing behind either.
    let failing = plugin("bad", "1.0.0").on_register(|_| async { Err("no sensors".into()) });
    let text = client.register(failing).await.unwrap_err().to_string();
    assert_eq!(text, "Plugin \"bad\": onRegister failed: no sensors");
    assert!(!client.has_plugin("bad"));
}

#[tokio::test]
async fn h32_row14_calls_are_read_in_both_namings_and_need_an_executor() {
    let client = client();
    let echo =
        tool("echo").describe("Echoes.").run(|args: Value, _: CallContext| async { Ok::<_, Failure>(args) });
    client.register_tool(echo).unwrap();
    for shape in [
        json!({"toolCallId": "c1", "toolName": "echo", "args": {"x": 1}}),
        json!({"id": "c1", "name": "echo", "arguments": {"x": 1}}),
        json!({"id": "c1", "name": "echo", "arguments": "{\"x\":1}"}),
        json!({"id": "c1", "name": "echo", "arguments": {"x": 1}, "toolCallId": "c1", "toolName": "echo", "args": {"x": 1}}),
        json!({"id": "c1", "type": "function", "function": {"name": "echo", "arguments": "{\"x\":1}"}}),
    ] {
        let call = ToolCall::read(&shape).unwrap_or_else(|e| panic!("{shape}: {e}"));
        assert_eq!(client.execute(&call).await.unwrap(), Ok(json!({"x": 1})), "{shape}");
    }
    assert_eq!(ToolCall::read(&json!({"id": "c1"})).unwrap_err().to_string(), "Tool call missing toolName");
    let broken = ToolCall::read(&json!({"id": "c1", "name": "echo", "arguments": "{"})).unwrap_err();
    assert!(broken.to_string().starts_with("Invalid tool arguments JSON: "));
    let unknown = client.execute(&call("zz", json!({}))).await.unwrap_err();
    assert_eq!(unknown.to_string(), "No executor for tool: zz");
    assert!(client.has_executor("echo") && !client.has_executor("zz"));
}

#[tokio::test]
async fn h25_row17_hooks_answer_in_order_what_no_executor_does() {
    let client = client();
    let taking = |name: &'static str, prefix: &'static str| {
        plugin(name, "1.0.0").on_tool_call(move |call: &ToolCall| {
            let mine = call.name.starts_with(prefix);
            mine.then(|| -> toolyard_client::Handled { Box::pin(async move { Ok(json!(name)) }) })
        })
    };
    client.register(taking("first", "mcp_")).await.unwrap();
    client.register(taking("second", "m")).await.unwrap();
    client.register_tool(answering("mcp_own", json!("own"))).unwrap();
    for (name, by) in [("mcp_x", "first"), ("mail", "second"), ("mcp_own", "own")] {
        assert_eq!(client.execute(&call(name, json!({}))).await.unwrap(), Ok(json!(by)), "{name}");
    }
    assert!(client.execute(&call("other", json!({}))).await.is_err());
}

#[tokio::test]
async fn h34_the_debug_log_tells_of_registrations_and_executions() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    let log = move |line: &str| kept.lock().unwrap().push(line.to_owned());
    let client = Client::builder().base_url("http://127.0.0.1:9").debug(log).build().unwrap();
    client.register(plugin("one", "1.2.3").tool(answering("a", json!(1)))).await.unwrap();
    client.execute(&call("a", json!({}))).await.unwrap().unwrap();
    client.unregister("one").await.unwrap();
    let lines = lines.lock().unwrap().join("\n");
    for told in
        ["plugin one 1.2.3 registered, tools: 1", "tool a begins", "tool a done", "plugin one unregistered"]
    {
        assert!(lines.contains(told), "{told}: {lines}");
    }
}

#[tokio::test]
async fn h38_h39_h43_row12_failures_timeouts_and_crashes_are_outcomes_and_end_with_an_event() {
    let limit = Duration::from_millis(30);
    let client = Client::builder().base_url("http://127.0.0.1:9").tool_timeout(limit).build().unwrap();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let kept = ended.clone();
    client.on_event(move |event| {
        if let ClientEvent::ToolEnd { call, outcome, .. } = event {
            kept.lock().unwrap().push((call.name.clone(), outcome.is_ok()));
        }
    });
    let never = || std::future::pending::<Result<Value, Failure>>();
    client.register_tool(tool("slow").describe("d").run(move |_: Value, _: CallContext| never())).unwrap();
    let own = Duration::from_millis(10);
    let quick = tool("quick").describe("d").timeout(own).run(move |_: Value, _: CallContext| never());
    client.register_tool(quick).unwrap();
    let failing = |_: Value, _: CallContext| async { Err::<Value, Failure>("no sensors".into()) };
    client.register_tool(tool("failing").describe("d").run(failing)).unwrap();
    async fn crash(_: Value, _: CallContext) -> Result<Value, Failure> {
        panic!("on purpose")
    }
    client.register_tool(tool("crashing").describe("d").run(crash)).unwrap();
    for (name, text) in [
        ("slow", "Tool slow timed out after 30 ms"),
        ("quick", "Tool quick timed out after 10 ms"),
        ("failing", "no sensors"),
        ("crashing", "Tool crashing crashed"),
    ] {
        assert_eq!(client.execute(&call(name, json!({}))).await.unwrap(), Err(text.to_owned()));
    }
    assert_eq!(ended.lock().unwrap().len(), 4, "also for those that failed");
}

#[test]
fn a_wrong_address_is_refused_at_once() {
    for url in ["", "gateway", "ftp://x", "http://user:pw@x"] {
        let refused = Client::builder().base_url(url).build().unwrap_err();
        assert!(refused.to_string().starts_with("base_url"), "{url}: {refused}");
    }
    let _ = PluginError::NameMissing;
}
