//! Rows G2, G3 and G9 to G15: what people write, and what they are told when
//! it is wrong.

use serde_json::{Value, json};
use toolyard_protocol::agent::execution::{BasicMode, Execution, Method};
use toolyard_protocol::agent::{AgentConfig, ToolChoice, parse};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::MessagePolicy;
use toolyard_protocol::tool::{Place, ToolSpec, Toolset, Visibility};

fn config(tools: Value) -> Value {
    json!({ "agent": { "name": "helper" }, "model": { "provider": "demo", "name": "demo" }, "tools": tools })
}

fn parsed(value: &Value) -> (AgentConfig, Toolset) {
    parse(value).unwrap_or_else(|e| panic!("{e}"))
}

fn tool(value: Value) -> ToolSpec {
    parsed(&config(json!([value]))).1.0.remove(0)
}

/// What a config with this change at this pointer is refused with.
fn refusal(pointer: &str, value: Value) -> String {
    let mut config = json!({
        "version": "1.0",
        "agent": { "name": "helper" },
        "model": { "provider": "demo", "name": "demo" },
        "loop": {},
        "tools": [{ "name": "one" }, { "name": "two", "execution": {} }],
        "mcp": { "servers": [] },
        "runtime": { "response": { "type": "ui-message-stream" } },
    });
    parsed(&config);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    config.pointer_mut(parent).unwrap()[key] = value;
    parse(&config).unwrap_err().to_string()
}

#[test]
fn g2_the_whole_document_is_read() {
    let (config, tools) = parsed(&json!({
        "version": "1.0",
        "agent": { "name": "goal-helper", "description": "Helps", "system": "Be kind." },
        "model": { "provider": "openai", "name": "gpt-x", "temperature": 0.7, "maxOutputTokens": 1000, "api": "responses",
            "reasoning": { "enabled": true, "effort": "xhigh", "budgetTokens": 10 },
            "providerOptions": { "openai": { "seed": 1 } } },
        "loop": { "maxSteps": 3, "toolChoice": "required" },
        "tools": [{ "name": "getUserApproval", "description": "Asks", "inputSchema": { "type": "object" },
            "display": { "mode": "full", "showInput": true, "customUI": "ApprovalCard" } }],
        "mcp": { "servers": [{ "name": "files", "url": "https://mcp.example.com", "transport": "sse",
            "headers": { "x": "y" }, "allowedTools": ["read"] }] },
        "permissions": { "askFrom": "medium", "answerers": "members" },
        "runtime": { "response": { "type": "ui-message-stream" } },
    }));
    assert_eq!(
        (config.agent.name.as_str(), config.agent.system.as_deref()),
        ("goal-helper", Some("Be kind."))
    );
    assert_eq!((config.model.temperature, config.model.max_output_tokens), (Some(0.7), Some(1000)));
    assert_eq!((config.loop_.max_steps, config.loop_.tool_choice), (3, ToolChoice::Required));
    assert_eq!(config.mcp.unwrap().servers[0].allowed_tools.as_deref(), Some(&["read".to_owned()][..]));
    assert_eq!(tools.0.len(), 1);
}

#[test]
fn g3_defaults_are_five_steps_and_auto() {
    let (config, tools) =
        parsed(&json!({ "agent": { "name": "a" }, "model": { "provider": "demo", "name": "m" } }));
    assert_eq!((config.loop_.max_steps, config.loop_.tool_choice), (5, ToolChoice::Auto));
    assert_eq!((config.loop_.max_tool_failures, config.loop_.on_message), (3, MessagePolicy::Queue));
    assert_eq!(tools, Toolset::default());
    for (text, choice) in
        [("auto", ToolChoice::Auto), ("required", ToolChoice::Required), ("none", ToolChoice::None)]
    {
        let mut written = config_of_loop(json!({ "toolChoice": text }));
        assert_eq!(parsed(&written).0.loop_.tool_choice, choice);
        written["loop"]["toolChoice"] = json!("never");
        assert!(parse(&written).unwrap_err().path.starts_with("loop.toolChoice"));
    }
}

fn config_of_loop(section: Value) -> Value {
    let mut config = config(json!([]));
    config["loop"] = section;
    config
}

#[test]
fn g9_a_tool_without_execution_is_a_client_tool() {
    for execution in [None, Some(Value::Null), Some(json!({})), Some(json!({ "mode": "no-execution" }))] {
        let mut written = json!({ "name": "fillActiveInput" });
        if let Some(execution) = &execution {
            written["execution"] = execution.clone();
        }
        let spec = tool(written);
        assert!(spec.is_client(), "{execution:?}");
        assert_eq!((spec.place, spec.visibility), (Place::Client, Visibility::Public));
        assert_eq!(spec.place.target(), "client");
        assert_eq!(spec.input_schema, json!({ "type": "object", "properties": {} }));
    }
}

#[test]
fn g9_static_and_pass_through_run_here() {
    let spec = tool(json!({ "name": "hours", "executionType": "basic",
        "execution": { "mode": "static", "output": { "open": "{{day}}" }, "template": true } }));
    let Execution::Basic(basic) = &spec.execution else { panic!("{spec:?}") };
    assert_eq!(
        (basic.mode, basic.template, basic.output["open"].as_str()),
        (BasicMode::Static, true, Some("{{day}}"))
    );
    assert_eq!((spec.place, spec.visibility), (Place::Gateway, Visibility::Private));
    assert!(!spec.is_client());

    let spec = tool(json!({ "name": "echo", "execution": { "mode": "pass-through" } }));
    assert!(matches!(&spec.execution, Execution::Basic(basic) if basic.mode == BasicMode::PassThrough));
    assert_eq!(spec.place, Place::Gateway);
}

#[test]
fn g10_to_g15_every_execution_type_is_read() {
    let of = |kind: &str, execution: Value| {
        tool(json!({ "name": "t", "executionType": kind, "execution": execution }))
    };
    let request =
        of("request", json!({ "url": "https://x", "method": "POST", "headers": { "a": "b" }, "timeout": 5 }));
    assert!(
        matches!(&request.execution, Execution::Request(r) if r.method == Method::Post && r.timeout == Some(5))
    );
    assert!(request.taints() && !request.repeats_safely());

    let image = of("image-generator", json!({ "provider": "openai", "baseURL": "https://x" }));
    assert_eq!(image.input_schema["required"], json!(["prompt"]));
    let agent = of("ai-agent", json!({ "agentConfig": "other" }));
    assert_eq!((agent.place, &agent.input_schema["required"]), (Place::Agent, &json!(["prompt"])));
    let waiting = of("waiting", json!({ "duration": 1000 }));
    assert!(waiting.repeats_safely() && waiting.input_schema["properties"]["seconds"].is_object());
    let compute = of("compute", json!({ "expression": "a + 1" }));
    assert!(compute.repeats_safely() && !compute.taints());
    for (spec, name) in
        [(&image, "image-generator"), (&agent, "ai-agent"), (&waiting, "waiting"), (&compute, "compute")]
    {
        assert_eq!(spec.execution.type_name(), name);
    }
}

#[test]
fn g15_a_prebuilt_tool_is_named_by_its_action() {
    let spec = tool(json!({ "executionType": "prebuilt", "execution": { "action": "setGoals" } }));
    assert_eq!(
        (spec.name.as_str(), spec.place, spec.visibility),
        ("setGoals", Place::Gateway, Visibility::Private)
    );
    let renamed =
        tool(json!({ "name": "plan", "executionType": "prebuilt", "execution": { "action": "setGoals" } }));
    assert_eq!(renamed.name.as_str(), "plan");
}

#[test]
fn g36_a_client_tool_may_be_external() {
    let spec = tool(json!({ "name": "executeRobotAction", "executionTarget": "external" }));
    assert_eq!(
        (spec.place, spec.place.target(), spec.place.is_client()),
        (Place::External, "external", true)
    );
}

#[test]
fn the_old_name_of_the_schema_is_read_too() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    assert_eq!(tool(json!({ "name": "t", "parameters": schema })).input_schema, schema);
}

#[test]
fn what_the_owner_says_of_a_tool_wins_over_its_name() {
    assert_eq!(tool(json!({ "name": "delete_file" })).risk, Risk::High);
    let spec = tool(json!({ "name": "delete_file", "risk": "low", "visibility": "private", "trusted": true,
        "idempotent": true, "expiresMs": 5, "timeoutMs": 6 }));
    assert_eq!(
        (spec.risk, spec.visibility, spec.trusted, spec.idempotent),
        (Risk::Low, Visibility::Private, true, true)
    );
    assert_eq!((spec.expires_ms, spec.timeout_ms), (Some(5), Some(6)));
}

#[test]
fn an_unknown_field_is_refused_with_its_path() {
    for (pointer, path) in [
        ("/agnet", "agnet"),
        ("/agent/nmae", "agent.nmae"),
        ("/model/temprature", "model.temprature"),
        ("/loop/maxStep", "loop.maxStep"),
        ("/tools/1/aproval", "tools[1].aproval"),
        ("/tools/1/execution/modee", "tools[1].execution.modee"),
        ("/mcp/sevrers", "mcp.sevrers"),
        ("/runtime/response/tpye", "runtime.response.tpye"),
    ] {
        let text = refusal(pointer, json!(1));
        assert!(text.starts_with(&format!("{path}: unknown field")), "{text}");
    }
}

#[test]
fn a_wrong_value_is_refused_with_its_path() {
    for (pointer, value, path) in [
        ("/agent/name", json!(1), "agent.name: "),
        ("/agent/name", json!("a b"), "agent.name: Invalid agent name"),
        ("/agent/name", json!("tasks"), "agent.name: Agent name \"tasks\" is reserved"),
        ("/model/temperature", json!(2.1), "model.temperature: must be between 0 and 2, got 2.1"),
        ("/model/temperature", json!(-0.1), "model.temperature: must be between 0 and 2"),
        ("/model/temperature", json!("hot"), "model.temperature: "),
        ("/model/maxOutputTokens", json!(0), "model.maxOutputTokens: must be at least 1"),
        ("/model/provider", json!(" "), "model.provider: must not be empty"),
        ("/model/name", json!(""), "model.name: must not be empty"),
        ("/loop/maxSteps", json!(0), "loop.maxSteps: must be between 1 and 50"),
        ("/loop/maxSteps", json!(51), "loop.maxSteps: must be between 1 and 50"),
        ("/loop/maxToolFailures", json!(0), "loop.maxToolFailures: must be at least 1"),
        ("/tools/1/name", json!("one"), "tools[1].name: tool one is defined twice"),
        ("/tools/1/name", json!("a b"), "tools[1].name: Invalid tool name"),
        ("/tools/1/name", json!(null), "tools[1].name: is required"),
        ("/tools/1/inputSchema", json!([]), "tools[1].inputSchema: must be a JSON Schema object"),
        ("/tools/1/executionType", json!("magic"), "tools[1].executionType: unknown variant"),
        ("/tools/1/expiresMs", json!(0), "tools[1]: timeoutMs and expiresMs must be at least 1"),
        ("/tools/1/execution", json!({"mode": "magic"}), "tools[1].execution.mode: unknown variant"),
        ("/runtime/response/type", json!("smoke"), "runtime.response.type: unknown variant"),
    ] {
        let text = refusal(pointer, value);
        assert!(text.starts_with(path), "{text}");
    }
}

#[test]
fn a_rule_between_fields_is_checked_too() {
    let refused = |tool: Value| parse(&config(json!([tool]))).unwrap_err().to_string();
    let gateway = json!({ "mode": "static" });
    assert_eq!(
        refused(json!({ "name": "t", "execution": gateway, "executionTarget": "client" })),
        "tools[0].executionTarget: only tools without execution run on a client"
    );
    assert_eq!(
        refused(
            json!({ "name": "t", "executionType": "waiting", "execution": { "duration": 2_592_000_001_u64 } })
        ),
        "tools[0].execution.duration: must be at most 2592000000 ms"
    );
    assert!(
        refused(json!({ "name": "t", "executionType": "request" }))
            .starts_with("tools[0].execution: missing field `url`")
    );
    assert!(refused(json!({ "executionType": "compute" })).starts_with("tools[0].name: is required"));
}

#[test]
fn what_is_not_an_object_is_refused() {
    for junk in [json!(null), json!([]), json!("agent"), json!({})] {
        assert!(parse(&junk).is_err(), "{junk}");
    }
}

#[test]
fn a_parsed_config_is_written_back_without_loss() {
    let written = config(json!([{ "name": "t", "risk": "high", "answerers": "admin", "ifAbsent": "fail" }]));
    let (first, tools) = parsed(&written);
    let (second, again) = parsed(&serde_json::to_value(&first).unwrap());
    assert_eq!((first, tools.hash()), (second, again.hash()));
}

#[test]
fn a_tools_fingerprint_changes_with_what_a_permission_was_given_for() {
    let base = json!({ "name": "t", "description": "d" });
    let print = |key: &str, value: Value| {
        let mut changed = base.clone();
        changed[key] = value;
        tool(changed).fingerprint()
    };
    let same = tool(base.clone()).fingerprint();
    assert_eq!(print("risk", json!("high")), same);
    assert_ne!(print("description", json!("other")), same);
    assert_ne!(print("inputSchema", json!({ "type": "object" })), same);
    assert_ne!(print("executionTarget", json!("external")), same);
}

/// Row G4: an agent names a server of the operator, or a remote one.
#[test]
fn g4_mcp_servers_are_read_and_checked_with_their_path() {
    let with = |servers: Value| {
        parse(
            &json!({ "agent": { "name": "a" }, "model": { "provider": "demo", "name": "m" }, "mcp": { "servers": servers } }),
        )
    };
    let (config, _) = with(json!([
        { "name": "files", "allowedTools": ["read"], "required": true },
        { "name": "web-1", "url": "https://example.com/mcp?x=1", "transport": "http", "headers": { "X-Key": "${secret.K}" },
          "startTimeoutMs": 1, "timeoutMs": 2, "totalTimeoutMs": 3, "trusted": false },
    ]))
    .unwrap();
    let servers = config.mcp.unwrap().servers;
    assert_eq!((servers[0].url.as_deref(), servers[0].required), (None, Some(true)));
    assert_eq!((servers[1].timeout_ms, servers[1].total_timeout_ms), (Some(2), Some(3)));
    let many: Vec<Value> = (0..33).map(|i| json!({ "name": format!("s{i}") })).collect();
    for (servers, text) in [
        (json!([{ "name": "a b" }]), "mcp.servers[0].name: must start with a letter or digit"),
        (
            json!([{ "name": "x".repeat(33) }]),
            "mcp.servers[0].name: must start with a letter or digit, then letters, digits, hyphens and underscores, at most 32",
        ),
        (
            json!([{ "name": "my-s" }, { "name": "My_S" }]),
            "mcp.servers[1].name: server My_S is defined twice",
        ),
        (json!([{ "name": "a", "command": "rm" }]), "mcp.servers[0].command: unknown field"),
        (json!([{ "name": "a", "url": "stdio:rm" }]), "mcp.servers[0].url: must start with https://"),
        (json!([{ "name": "a", "url": "https:///x" }]), "mcp.servers[0].url: has no host"),
        (
            json!([{ "name": "a", "url": "https://u:p@h/" }]),
            "mcp.servers[0].url: must not contain a user name",
        ),
        (json!([{ "name": "a", "headers": { "x": "y" } }]), "mcp.servers[0].url: is required"),
        (json!([{ "name": "a", "url": "https://h", "headers": { "x y": "z" } }]), "mcp.servers[0].headers: "),
        (
            json!([{ "name": "a", "url": "https://h", "headers": { "x": 1 } }]),
            "mcp.servers[0].headers.x: must be a string",
        ),
        (
            json!([{ "name": "a", "url": "https://h", "headers": { "x": "a\r\nb" } }]),
            "mcp.servers[0].headers.x: must not have control",
        ),
        (
            json!([{ "name": "a", "timeoutMs": 0 }]),
            "mcp.servers[0].timeoutMs: must be between 1 and 86400000",
        ),
        (json!(many), "mcp.servers: at most 32 servers"),
    ] {
        let refused = with(servers).unwrap_err().to_string();
        assert!(refused.starts_with(text), "{refused}");
    }
}

#[test]
fn u1_provider_tools_are_lists_by_vendor() {
    let mut value = config(json!([]));
    value["providerTools"] = json!({ "openai": [{ "type": "web_search" }] });
    assert_eq!(parsed(&value).0.provider_tools["openai"][0]["type"], "web_search");
    let many: Vec<Value> = vec![json!({}); 17];
    for (tools, text) in [
        (
            json!({ "acme": [] }),
            "providerTools.acme: no such vendor; they are openai, anthropic, gemini, bedrock",
        ),
        (json!({ "openai": {} }), "providerTools.openai: must be a list of objects"),
        (json!({ "openai": ["web_search"] }), "providerTools.openai: must be a list of objects"),
        (json!({ "openai": many }), "providerTools.openai: at most 16"),
    ] {
        assert_eq!(refusal("/providerTools", tools), text);
    }
}
