//! Rows U1 to U13 and U27, U30 over the whole gateway: bundles whose code takes
//! part in the loop, beside the plugins that ship.

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, fine};
use crate::plugins::install;
use crate::yard::{data, eventually, join, new_space, new_user, read_all};

/// A gateway with bundles, an agent that uses plugins, and ann in its space.
struct Stage {
    gateway: Gateway,
    space: String,
}

fn bundle(id: &str, more: Value) -> Value {
    let mut document = json!({"id": id, "name": id, "version": "1.0.0", "tools": []});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document
}

impl Stage {
    async fn new(bundles: &[Value], plugins: Value) -> Self {
        Self::on(Gateway::start().await, bundles, plugins).await
    }

    async fn on(gateway: Gateway, bundles: &[Value], plugins: Value) -> Self {
        for document in bundles {
            let (status, body) = install(&gateway, document).await;
            assert_eq!(status, 200, "{body}");
        }
        let config = json!({
            "agent": {"name": "hooked"}, "model": {"provider": "demo", "name": "demo"}, "plugins": plugins,
            "tools": [
                {"name": "echo", "description": "Says it again.", "visibility": "public",
                 "execution": {"mode": "pass-through"}},
                {"name": "look", "description": "A page looks."},
            ],
        });
        gateway.post("/api/agents", json!({ "config": config })).await;
        let made = gateway.post("/api/entities/agent", json!({"agentId": "hooked"})).await;
        let (space, ann) = (new_space(&gateway).await, new_user(&gateway, "ann").await);
        join(&gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
        join(&gateway, &space, &ann).await;
        Self { gateway, space }
    }

    async fn say(&self, text: &str) -> String {
        let path = format!("/api/smart-spaces/{}/messages", self.space);
        let posted =
            fine(self.gateway.user("ann", Method::POST, &path).json(&json!({"content": text}))).await;
        posted["runs"][0]["runId"].as_str().unwrap_or_else(|| panic!("{posted}")).to_owned()
    }

    async fn finish(&self, run: &str) -> Vec<SseEvent> {
        let stream = self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
        read_all(stream.send().await.unwrap()).await
    }

    /// What the agent said last, as the conversation keeps it.
    async fn answer(&self) -> String {
        let list = self.gateway.get(&format!("/api/smart-spaces/{}/messages", self.space)).await;
        list["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
    }
}

fn named<'a>(events: &'a [SseEvent], name: &str) -> Vec<Value> {
    let found: Vec<&'a SseEvent> = events.iter().filter(|e| e.event.as_deref() == Some(name)).collect();
    found.into_iter().map(data).collect()
}

fn emitted(events: &[SseEvent]) -> Vec<(Value, Value)> {
    named(events, "plugin.emitted").into_iter().map(|e| (e["plugin"].clone(), e["value"].clone())).collect()
}

#[tokio::test]
async fn u1_u4_u7_u10_bundles_and_shipped_plugins_take_part_in_the_order_of_the_list() {
    let loud = bundle(
        "loud",
        json!({"rewrites": true, "hooks": {
            "onTextChunk": "return chunk.toUpperCase()",
            "onTextEnd": "context.state.set('letters', text.length)",
        }}),
    );
    let signs = bundle(
        "signs",
        json!({"rewrites": true, "hooks": {
            "onAgentResponse": "return `${response.text} (${context.state.get('letters')} ${context.options.unit}, ${context.provider})`",
        }}),
    );
    let plugins = json!(["loud", {"id": "pii-filter", "options": {"results": false}}, {"id": "signs", "options": {"unit": "letters"}}]);
    let stage = Stage::new(&[loud, signs], plugins).await;
    let run = stage.say("say grüße an ada@example.org").await;
    let events = stage.finish(&run).await;
    assert!(!named(&events, "run.completed").is_empty(), "{events:?}");
    // The filter came between: the text was loud already, and is signed after it.
    let answer = stage.answer().await;
    assert!(answer.starts_with("GRÜSSE AN [email] ("), "{answer}");
    assert!(answer.ends_with(" letters, demo)"), "{answer}");
    assert!(emitted(&events).is_empty(), "a shipped plugin is not missing: {events:?}");
}

#[tokio::test]
async fn u6_u8_u9_a_bundle_changes_the_prompt_skips_a_call_and_edits_a_result() {
    let guard = bundle(
        "guard",
        json!({"hooks": {
            "onUserMessage": "const last = input.messages.at(-1); last.content = last.content.replace('please ', ''); return input",
            "onBeforeToolCall": "if (call.args.q === 'secret') return null; return { ...call, args: { q: call.args.q + '?' } }",
            "onAfterToolCall": "return { seen: result.result, by: context.runId.length > 0 }",
        }}),
    );
    let stage = Stage::new(&[guard], json!(["guard"])).await;
    let events = stage.finish(&stage.say("please call echo {\"q\": \"hi\"}").await).await;
    let output = &named(&events, "tool-output-available")[0]["output"];
    assert_eq!((&output["seen"]["q"], &output["by"]), (&json!("hi?"), &json!(true)), "{output}");
    let events = stage.finish(&stage.say("call echo {\"q\": \"secret\"}").await).await;
    let error = &named(&events, "tool-error")[0]["error"];
    assert_eq!(error, "Tool call skipped by plugin guard", "{events:?}");
}

#[tokio::test]
async fn u11_u30_code_that_fails_lets_the_run_go_on_and_the_others_hear_of_it() {
    let ill = bundle(
        "ill",
        json!({"rewrites": true, "hooks": {"onTextChunk": "throw new Error('no chunks today')"}}),
    );
    let nurse = bundle("nurse", json!({"hooks": {"onError": "context.events.emit('heard', error)"}}));
    let stage = Stage::new(&[ill, nurse], json!(["ill", "nurse"])).await;
    let events = stage.finish(&stage.say("say hello").await).await;
    assert!(!named(&events, "run.completed").is_empty(), "{events:?}");
    assert_eq!(stage.answer().await, "hello");
    let heard = json!("plugin ill failed: Error: no chunks today");
    assert!(emitted(&events).contains(&(json!("nurse"), heard)), "{events:?}");
    assert!(stage.gateway.log().contains("a plugin failed"), "{}", stage.gateway.log());
    // A failure of the model is heard as well, and goes on to the caller.
    let events = stage.finish(&stage.say("fail").await).await;
    assert!(!named(&events, "run.failed").is_empty(), "{events:?}");
    assert_eq!(emitted(&events).len(), 1, "{events:?}");
}

#[tokio::test]
async fn spec_30_a_critical_bundle_stops_the_run_and_shows_nothing_before() {
    let strict = bundle(
        "strict",
        json!({"rewrites": true, "critical": true, "hooks": {
            "onTextEnd": "if (text.includes('bomb')) throw new Error('not here'); return text + '.'",
        }}),
    );
    let stage = Stage::new(&[strict], json!(["strict"])).await;
    let run = stage.say("say a bomb").await;
    let events = stage.finish(&run).await;
    let failed = &named(&events, "run.failed")[0];
    assert_eq!(failed["error"]["code"], "plugin_failed", "{failed}");
    assert_eq!(failed["error"]["message"], "Stopped by plugin strict", "{failed}");
    let told: String =
        events.iter().filter(|e| e.event.as_deref() != Some("run.created")).map(|e| e.data.clone()).collect();
    assert!(!told.contains("a bomb\"") && named(&events, "text-delta").is_empty(), "{told}");
    let events = stage.finish(&stage.say("say a flower").await).await;
    assert!(!named(&events, "run.completed").is_empty(), "{events:?}");
    assert_eq!(stage.answer().await, "a flower.");
    // Once it is revoked, no run goes on without it.
    stage.gateway.post("/api/plugins/revoke", json!({"plugin": "strict", "reason": "a hole"})).await;
    let events = stage.finish(&stage.say("say a bomb").await).await;
    assert_eq!(named(&events, "run.failed")[0]["error"]["code"], "plugin_failed", "{events:?}");
}

/// The call was made and is not made again; what it gave is shown to nobody.
#[tokio::test]
async fn spec_30_a_critical_bundle_that_refuses_a_result_ends_the_run_once() {
    let strict = bundle(
        "strict",
        json!({"critical": true, "hooks": {"onAfterToolCall": "throw new Error('not this one')"}}),
    );
    let stage = Stage::new(&[strict], json!(["strict"])).await;
    let events = stage.finish(&stage.say("call echo {\"q\": \"canary-result\"}").await).await;
    assert_eq!(named(&events, "run.failed")[0]["error"]["message"], "Stopped by plugin strict", "{events:?}");
    let errors = named(&events, "tool-error");
    assert_eq!((errors.len(), &errors[0]["error"]), (1, &json!("Stopped by plugin strict")), "{events:?}");
    assert!(named(&events, "tool-output-available").is_empty(), "{events:?}");
}

#[tokio::test]
async fn u5_the_state_of_a_bundle_survives_a_kill_with_its_step() {
    let counter = bundle(
        "counter",
        json!({"hooks": {
            "onUserMessage": "context.state.set('asked', (context.state.get('asked') ?? 0) + 1)",
            "onAfterToolCall": "context.state.set('results', (context.state.get('results') ?? 0) + 1)",
            "onAgentResponse": "context.events.emit('count', Object.fromEntries(context.state))",
        }}),
    );
    let stage = Stage::new(&[counter], json!(["counter"])).await;
    let run = stage.say("call look {}").await;
    let path = format!("/api/waits?runId={run}");
    eventually("the page is asked", async || {
        !stage.gateway.get(&path).await["waits"].as_array().unwrap().is_empty()
    })
    .await;
    let Stage { gateway, space } = stage;
    let stage = Stage { gateway: Gateway::start_with(gateway.kill(), &[]).await, space };
    let wait = stage.gateway.get(&path).await["waits"][0].clone();
    let result = json!({"toolCallId": wait["toolCallId"], "result": "a garden"});
    stage.gateway.post(&format!("/api/runs/{run}/tool-results"), result).await;
    let events = stage.finish(&run).await;
    assert_eq!(emitted(&events), [(json!("counter"), json!({"asked": 2, "results": 1}))]);
    // The next run begins with nothing.
    let events = stage.finish(&stage.say("say again").await).await;
    assert_eq!(emitted(&events), [(json!("counter"), json!({"asked": 1}))]);
}

#[tokio::test]
async fn u12_a_bundle_is_initialized_before_its_hooks_and_destroyed_after_its_step() {
    let life = bundle(
        "life",
        json!({"hooks": {
            "initialize": "globalThis.born = init.provider",
            "onTextEnd": "context.events.emit('born', born)",
            "destroy": "context.logger.info(`farewell of ${born}`)",
        }}),
    );
    let stage = Stage::new(&[life], json!(["life"])).await;
    let events = stage.finish(&stage.say("say hello").await).await;
    assert_eq!(emitted(&events), [(json!("life"), json!("demo"))]);
    eventually("its farewell is logged", async || stage.gateway.log().contains("farewell of demo")).await;
}

/// A bundle that is not critical and not there is missed by nobody but its readers.
#[tokio::test]
async fn u30_a_plugin_that_is_not_installed_is_told_and_the_run_goes_on() {
    let stage = Stage::new(&[], json!(["nobody", "citations"])).await;
    let events = stage.finish(&stage.say("cite https://example.org/a").await).await;
    let told = emitted(&events);
    assert_eq!(told[0], (json!("nobody"), json!({"plugin": "nobody"})));
    assert_eq!((told.len(), &told[1].0), (2, &json!("citations")), "{told:?}");
}

/// The operator may want spans of agents that name no plugin; nothing is said in them.
#[tokio::test]
async fn u26_all_agents_are_traced_if_the_operator_says_so() {
    let far = FarSide::start().await;
    let address = format!("{}/v1/traces", far.url());
    let env =
        [("TOOLYARD_TELEMETRY_OTLP_TRACES", address.as_str()), ("TOOLYARD_TELEMETRY_ALL_AGENTS", "true")];
    let stage = Stage::on(Gateway::start_with(Folder::new(), &env).await, &[], json!([])).await;
    let run = stage.say("call echo {\"q\": \"canary\"}").await;
    stage.finish(&run).await;
    let told = || far.asked().iter().map(|asked| asked.json().to_string()).collect::<String>();
    eventually("the turn is told", async || told().contains("\"invoke_agent hooked\"")).await;
    let told = told();
    assert!(told.contains("execute_tool echo") && told.contains(&run), "{told}");
    assert!(!told.contains("canary"), "{told}");
}

/// Row U26: a turn becomes spans at the operator's collector.
#[tokio::test]
async fn u26_the_spans_of_a_turn_reach_the_collector() {
    let far = FarSide::start().await;
    let address = format!("{}/v1/traces", far.url());
    let env = [
        ("TOOLYARD_TELEMETRY_OTLP_TRACES", address.as_str()),
        ("TOOLYARD_TELEMETRY_AUTHORIZATION", "Basic cHVibGljOnNlY3JldA=="),
    ];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let stage = Stage::on(gateway, &[], json!([{"id": "tracing", "options": {"content": true}}])).await;
    stage.finish(&stage.say("call echo {\"q\": \"grüße\"}").await).await;
    let spans = || -> Vec<Value> {
        let asked = far.asked();
        let lists =
            asked.iter().map(|asked| asked.json()["resourceSpans"][0]["scopeSpans"][0]["spans"].clone());
        lists.flat_map(|list| list.as_array().cloned().unwrap()).collect()
    };
    let root = || spans().into_iter().find(|span| span["name"] == "invoke_agent hooked");
    eventually("the turn is told", async || root().is_some()).await;
    let (root, spans) = (root().unwrap(), spans());
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chat demo", "execute_tool echo", "chat demo", "invoke_agent hooked"]);
    for span in &spans[..3] {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&root["traceId"], &root["spanId"]), "{span}");
    }
    assert_eq!((root["traceId"].as_str().unwrap().len(), root["spanId"].as_str().unwrap().len()), (32, 16));
    let attribute = |span: &Value, key: &str| {
        let found = span["attributes"].as_array().unwrap().iter().find(|a| a["key"] == key);
        found.map(|a| a["value"].clone()).unwrap_or_default()
    };
    assert_eq!(attribute(&root, "gen_ai.operation.name"), json!({"stringValue": "invoke_agent"}));
    assert!(attribute(&root, "gen_ai.usage.output_tokens")["intValue"].is_string(), "{root}");
    let arguments = attribute(&spans[1], "gen_ai.tool.call.arguments");
    assert_eq!(arguments, json!({"stringValue": "{\"q\":\"grüße\"}"}));
    assert_eq!(far.asked()[0].header("authorization"), Some("Basic cHVibGljOnNlY3JldA=="));
    assert!(far.asked()[0].line.starts_with("POST /v1/traces"), "{}", far.asked()[0].line);
}
