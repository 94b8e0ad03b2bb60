//! MCP servers in runs, over the whole gateway. The far side is a program of
//! its own, and its own log says what was executed.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::fault_http::python;
use crate::gateway::{Folder, Gateway, ask, fine};
use crate::yard::{data, eventually, join, new_space, new_user, read_all};

struct Far {
    gateway: Gateway,
    space: String,
}

/// The operator's servers: the fault server in two eras, and one that is not there.
fn servers(folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/fixtures/fault_server.py");
    let fault = |mode: &str| {
        json!({"command": python(), "args": ["-u", script, mode],
               "env": {"FAULT_LOG": folder.join("far-log")}, "startup_timeout_sec": 30})
    };
    json!({"mcpServers": {
        "old": fault("plain"), "new": fault("modern"),
        "gone": {"command": "no-such-program", "startup_timeout_sec": 2},
    }})
}

async fn start(folder: Folder) -> Gateway {
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, servers(folder.path()).to_string()).unwrap();
    Gateway::start_with(folder, &[("TOOLYARD_MCP_SERVERS_FILE", file.to_str().unwrap())]).await
}

impl Far {
    async fn new(names: Value, extra: Value) -> Self {
        let gateway = start(Folder::new()).await;
        let mut config = json!({
            "agent": {"name": "far"}, "model": {"provider": "demo", "name": "demo"}, "mcp": {"servers": names},
        });
        for (key, value) in extra.as_object().unwrap() {
            config[key] = value.clone();
        }
        gateway.post("/api/agents", json!({ "config": config })).await;
        let made = gateway.post("/api/entities/agent", json!({"agentId": "far"})).await;
        let space = new_space(&gateway).await;
        join(&gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
        let ann = new_user(&gateway, "ann").await;
        join(&gateway, &space, &ann).await;
        let far = Self { gateway, space };
        far.until_ready().await;
        far
    }

    /// Its servers have told their tools.
    async fn until_ready(&self) {
        let ready = || async {
            let list = self.gateway.get("/api/mcp/servers").await;
            let servers = list["servers"].as_array().unwrap().clone();
            let there = |name: &str| servers.iter().any(|s| s["name"] == name && s["state"] == "ready");
            there("old") && there("new")
        };
        eventually("the servers are ready", ready).await;
    }

    async fn say(&self, content: &str) -> String {
        let path = format!("/api/smart-spaces/{}/messages", self.space);
        let posted = self.gateway.user("ann", Method::POST, &path).json(&json!({ "content": content }));
        fine(posted).await["runs"][0]["runId"].as_str().unwrap().to_owned()
    }

    async fn finish(&self, run: &str) -> Vec<SseEvent> {
        let stream = self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
        read_all(stream.send().await.unwrap()).await
    }

    /// The wait that a run has open, once there is one.
    async fn wait_of(&self, run: &str) -> Value {
        let path = format!("/api/waits?runId={run}");
        for _ in 0..2000 {
            let list = self.gateway.get(&path).await;
            if let Some(wait) = list["waits"].as_array().and_then(|w| w.first()) {
                return wait.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no wait opened: {}", self.gateway.log());
    }

    async fn answer(&self, wait: &Value, answer: Value) {
        let path = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
        fine(self.gateway.user("ann", Method::POST, &path).json(&answer)).await;
    }

    /// How often the far side executed a tool.
    fn executed(&self, tool: &str) -> usize {
        let log = std::fs::read_to_string(self.gateway.folder.path().join("far-log")).unwrap_or_default();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line[0] == "call" && line[1] == tool).count()
    }
}

pub(crate) fn named(events: &[SseEvent], name: &str) -> Option<Value> {
    events.iter().find(|event| event.event.as_deref() == Some(name)).map(data)
}

#[tokio::test]
async fn g4_an_agent_calls_tools_of_mcp_servers_of_both_eras() {
    let far = Far::new(json!([{"name": "old"}, {"name": "new", "allowedTools": ["echo"]}]), json!({})).await;
    for server in ["old", "new"] {
        let run = far.say(&format!("call mcp_{server}_echo {{\"message\": \"hello\"}}")).await;
        let events = far.finish(&run).await;
        let output = named(&events, "tool-output-available").unwrap_or_else(|| panic!("{events:?}"));
        assert!(output["output"].as_str().unwrap().contains("hello"), "{output}");
        assert_eq!(
            (&output["untrusted"], output["toolName"].as_str()),
            (&json!(true), Some(&*format!("mcp_{server}_echo")))
        );
        assert!(named(&events, "run.completed").is_some());
    }
    assert_eq!(far.executed("echo"), 2);
    // What is not allowed is not there, and bad arguments never leave the gateway.
    let events = far.finish(&far.say("call mcp_new_task {}").await).await;
    assert!(named(&events, "tool-error").unwrap()["error"].as_str().unwrap().contains("not found"));
    let events = far.finish(&far.say("call mcp_old_echo {\"message\": 7}").await).await;
    assert!(named(&events, "tool-error").is_some(), "{events:?}");
    assert_eq!((far.executed("task"), far.executed("echo")), (0, 2));
}

#[tokio::test]
async fn g4_a_server_that_is_down_is_a_warning_and_a_required_one_ends_the_run() {
    let far = Far::new(json!([{"name": "old"}, {"name": "gone"}]), json!({})).await;
    let events = far.finish(&far.say("call mcp_old_echo {\"message\": \"on\"}").await).await;
    assert_eq!(named(&events, "plugin.emitted").unwrap()["value"], json!({"server": "gone"}));
    assert!(named(&events, "tool-output-available").is_some() && named(&events, "run.completed").is_some());
    let config = json!({
        "agent": {"name": "far"}, "model": {"provider": "demo", "name": "demo"},
        "mcp": {"servers": [{"name": "gone", "required": true}]},
    });
    far.gateway.post("/api/agents", json!({ "config": config })).await;
    let events = far.finish(&far.say("hello").await).await;
    let failed = named(&events, "run.failed").unwrap();
    assert_eq!(failed["error"]["code"], "server_missing", "{failed}");
}

#[tokio::test]
async fn g4_a_call_whose_server_dies_is_uncertain_and_not_repeated() {
    let far = Far::new(json!([{"name": "old"}]), json!({})).await;
    let events = far.finish(&far.say("call mcp_old_die {}").await).await;
    assert_eq!(named(&events, "tool-error").unwrap()["outcome"], "uncertain", "{events:?}");
    assert_eq!(far.executed("die"), 1);
    // The server is started again for the next one.
    let events = far.finish(&far.say("call mcp_old_echo {\"message\": \"again\"}").await).await;
    assert!(named(&events, "tool-output-available").is_some(), "{events:?}");
}

#[tokio::test]
async fn g4_a_servers_question_waits_on_disk_over_a_kill_of_the_gateway() {
    let far = Far::new(json!([{"name": "new"}]), json!({})).await;
    let run = far.say("call mcp_new_ask {}").await;
    let wait = far.wait_of(&run).await;
    assert_eq!(wait["kind"], "input", "{wait}");
    assert!(wait.to_string().contains("Which colour?"), "{wait}");
    // The server's own note is nobody's business.
    let events = far.gateway.get(&format!("/api/runs/{run}/events")).await;
    assert!(!events.to_string().contains("state-1") && !wait.to_string().contains("state-1"));
    let Far { gateway, space } = far;
    let far = Far { gateway: start(gateway.kill()).await, space };
    far.answer(&wait, json!({"value": {"colour": "blue"}})).await;
    let events = far.finish(&run).await;
    let output = named(&events, "tool-output-available").unwrap_or_else(|| panic!("{events:?}"));
    assert!(output["output"].as_str().unwrap().contains("blue"), "{output}");
    assert_eq!(far.executed("ask"), 2, "the question, and the answer");
}

/// What a server says of its progress is in the log, and only a backend or an
/// open tool's reader sees its words.
#[tokio::test]
async fn g4_progress_of_an_mcp_call_is_told() {
    let far = Far::new(json!([{"name": "old"}]), json!({})).await;
    let run = far.say("call mcp_old_steps {\"steps\": 3, \"pause\": 0.01}").await;
    let events = far.finish(&run).await;
    let progress = named(&events, "tool.progress").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(progress["message"], "step 1", "{progress}");
    assert!((progress["fraction"].as_f64().unwrap() - 1.0 / 3.0).abs() < 0.01, "{progress}");
    assert!(named(&events, "tool-output-available").is_some());
    let seen = fine(far.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/events"))).await;
    assert!(seen.to_string().contains("tool.progress") && !seen.to_string().contains("step 1"), "{seen}");
}

/// A task of a server works on while the gateway is dead: its end is found, and
/// the tool is called once.
#[tokio::test]
async fn g4_a_servers_task_is_followed_over_a_kill_of_the_gateway() {
    let far = Far::new(json!([{"name": "new"}]), json!({})).await;
    let run = far.say("call mcp_new_task_held {}").await;
    let kept = || async {
        let events = far.gateway.get(&format!("/api/runs/{run}/events")).await;
        events.to_string().contains("tool.progress")
    };
    eventually("the ticket is kept", kept).await;
    let events = far.gateway.get(&format!("/api/runs/{run}/events")).await;
    assert!(!events.to_string().contains("taskId"), "{events}");
    let Far { gateway, space } = far;
    let folder = gateway.kill();
    std::fs::write(folder.path().join("far-log.go"), "").unwrap();
    let far = Far { gateway: start(folder).await, space };
    let events = far.finish(&run).await;
    let output = named(&events, "tool-output-available").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(output["output"], "held to the end");
    assert_eq!(far.executed("task_held"), 1);
}

/// A server of the older era asks in the middle of its call: the question is a
/// wait like any other, and the call goes on with the answer.
#[tokio::test]
async fn g4_an_older_servers_question_is_a_wait_while_its_call_is_in_flight() {
    let far = Far::new(json!([{"name": "old"}]), json!({})).await;
    for (answer, heard) in
        [(json!({"value": {"colour": "blue"}}), "blue"), (json!({"value": {"action": "decline"}}), "decline")]
    {
        let run = far.say("call mcp_old_elicit {}").await;
        let wait = far.wait_of(&run).await;
        assert_eq!(wait["kind"], "input", "{wait}");
        assert!(wait.to_string().contains("Which colour?"), "{wait}");
        far.answer(&wait, answer).await;
        let events = far.finish(&run).await;
        let output = named(&events, "tool-output-available").unwrap_or_else(|| panic!("{events:?}"));
        assert!(output["output"].as_str().unwrap().contains(heard), "{output}");
    }
    assert_eq!(far.executed("elicit"), 2);
    // A no ends the call, and so does a cancel of the run; nothing stays open.
    let run = far.say("call mcp_old_elicit {}").await;
    far.answer(&far.wait_of(&run).await, json!({"decision": "deny"})).await;
    assert!(named(&far.finish(&run).await, "tool-error").is_some());
    let run = far.say("call mcp_old_elicit {}").await;
    far.wait_of(&run).await;
    far.gateway.post(&format!("/api/runs/{run}/cancel"), json!({})).await;
    assert!(named(&far.finish(&run).await, "run.canceled").is_some());
    assert_eq!(far.gateway.get("/api/waits").await["waits"], json!([]));
}

/// The node that held the question dies: nobody knows what came of the call.
#[tokio::test]
async fn g4_an_older_servers_question_is_uncertain_once_its_node_is_dead() {
    let far = Far::new(json!([{"name": "old"}]), json!({})).await;
    let run = far.say("call mcp_old_elicit {}").await;
    let wait = far.wait_of(&run).await;
    let Far { gateway, space } = far;
    let far = Far { gateway: start(gateway.kill()).await, space };
    let events = far.finish(&run).await;
    assert_eq!(named(&events, "tool-error").unwrap()["outcome"], "uncertain", "{events:?}");
    let path = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    let late = far.gateway.user("ann", Method::POST, &path).json(&json!({"value": {"colour": "red"}}));
    assert_eq!(ask(late).await.0, 409);
    assert_eq!(far.executed("elicit"), 1);
}

#[tokio::test]
async fn x13_a_denied_or_undecided_mcp_tool_is_not_executed() {
    let rules = json!({"permissions": {"rules": [{"decision": "ask", "place": "mcp"}]}});
    let far = Far::new(json!([{"name": "old"}]), rules).await;
    let run = far.say("call mcp_old_echo {\"message\": \"no\"}").await;
    let wait = far.wait_of(&run).await;
    assert_eq!((&wait["kind"], far.executed("echo")), (&json!("approval"), 0));
    far.answer(&wait, json!({"decision": "deny"})).await;
    let events = far.finish(&run).await;
    assert_eq!(named(&events, "tool-error").unwrap()["error"], "Tool execution denied by user");
    assert_eq!(far.executed("echo"), 0);
    let run = far.say("call mcp_old_echo {\"message\": \"yes\"}").await;
    let wait = far.wait_of(&run).await;
    far.answer(&wait, json!({"decision": "allow", "remember": "always"})).await;
    far.finish(&run).await;
    assert_eq!(far.executed("echo"), 1);
}

/// X4: a yes is for the tool that was shown. A server that says something else
/// of it afterwards is asked about again, though its name is the same.
#[tokio::test]
async fn x4_an_mcp_tool_whose_words_are_swapped_after_a_yes_asks_again() {
    let rules = json!({"permissions": {"rules": [{"decision": "ask", "place": "mcp"}]}});
    let far = Far::new(json!([{"name": "old"}]), rules).await;
    let call = "call mcp_old_echo {\"message\": \"x\"}";
    let run = far.say(call).await;
    far.answer(&far.wait_of(&run).await, json!({"decision": "allow", "remember": "always"})).await;
    far.finish(&run).await;
    far.finish(&far.say(call).await).await;
    assert_eq!(far.executed("echo"), 2, "the yes is remembered");
    let run = far.say("call mcp_old_swap {}").await;
    far.answer(&far.wait_of(&run).await, json!({"decision": "allow"})).await;
    far.finish(&run).await;
    let swapped =
        || async { far.gateway.get("/api/tools?agentId=far").await.to_string().contains("Changed!") };
    eventually("the new words are known", swapped).await;
    let run = far.say(call).await;
    let wait = far.wait_of(&run).await;
    assert_eq!((&wait["kind"], far.executed("echo")), (&json!("approval"), 2), "{wait}");
    far.answer(&wait, json!({"decision": "deny"})).await;
    far.finish(&run).await;
    assert_eq!(far.executed("echo"), 2);
}

/// Tools are found at run time, each with the service it comes from, its schema
/// and its risk; a user sees no schema of a private one.
#[tokio::test]
async fn c8_c9_tools_of_services_are_listed_as_they_are_now() {
    let far = Far::new(
        json!([{"name": "old"}, {"name": "new", "allowedTools": ["echo"]}, {"name": "gone"}]),
        json!({}),
    )
    .await;
    let list = far.gateway.get("/api/tools?agentId=far").await;
    let tools = list["tools"].as_array().unwrap();
    let find =
        |key: &str| tools.iter().find(|t| t["key"] == key).unwrap_or_else(|| panic!("{key}: {list}")).clone();
    let echo = find("old:echo");
    assert_eq!(
        (&echo["name"], &echo["serviceId"], &echo["riskLevel"], &echo["executionTarget"]),
        (&json!("mcp_old_echo"), &json!("old"), &json!("low"), &json!("server")),
        "{echo}"
    );
    assert_eq!(echo["inputSchema"]["properties"]["message"]["type"], "string", "{echo}");
    let of_new: Vec<&Value> = tools.iter().filter(|t| t["serviceId"] == "new").collect();
    assert_eq!(of_new.len(), 1, "{list}");
    assert_eq!(list["missing"], json!([{"serviceId": "gone", "needsLogin": false}]));
    // What a service adds is there, without a restart of anything.
    far.finish(&far.say("call mcp_old_grow {}").await).await;
    let grown =
        || async { far.gateway.get("/api/tools?agentId=far").await.to_string().contains("old:grown0") };
    eventually("the new tool", grown).await;
    let seen = fine(far.gateway.user("ann", Method::GET, "/api/tools?agentId=far")).await;
    assert!(seen["tools"].as_array().unwrap().iter().all(|t| t.get("inputSchema").is_none()), "{seen}");
    assert_eq!(ask(far.gateway.secret(Method::GET, "/api/tools?agentId=nobody")).await.0, 404);
}

/// G8, second half: a tool whose server says nothing of its input takes any.
#[tokio::test]
async fn g8_a_servers_tool_without_a_schema_takes_any_input() {
    let far = Far::new(json!([{"name": "old"}]), json!({})).await;
    let events = far.finish(&far.say("call mcp_old_rich {\"anything\": [1, {\"deep\": true}]}").await).await;
    assert!(named(&events, "tool-output-available").is_some(), "{events:?}");
}

/// The nine steps: a message, the model picks a tool, the gate stops it, the
/// user is asked and allows it, the server executes it, the result reaches the
/// model, the model goes on, and its answer is a message.
#[tokio::test]
async fn c16_from_a_message_over_the_gate_to_the_servers_result_and_the_answer() {
    let rules = json!({"permissions": {"rules": [{"decision": "ask", "place": "mcp"}]}});
    let far = Far::new(json!([{"name": "old"}]), rules).await;
    let run = far.say("call mcp_old_echo {\"message\": \"heron\"}").await;
    let wait = far.wait_of(&run).await;
    assert_eq!((&wait["kind"], &wait["payload"]["serviceId"]), (&json!("approval"), &json!("old")), "{wait}");
    assert_eq!(far.executed("echo"), 0);
    far.answer(&wait, json!({"decision": "allow"})).await;
    let events = far.finish(&run).await;
    let order = ["tool-approval-request", "tool-input-available", "tool-output-available", "run.completed"];
    let places: Vec<usize> = order
        .iter()
        .map(|name| {
            events
                .iter()
                .position(|e| e.event.as_deref() == Some(*name))
                .unwrap_or_else(|| panic!("{name}: {events:?}"))
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(far.executed("echo"), 1);
    let messages = far.gateway.get(&format!("/api/smart-spaces/{}/messages", far.space)).await;
    let last = messages["messages"].as_array().unwrap().last().unwrap();
    assert!(last["role"] == "assistant" && last.to_string().contains("heron"), "{last}");
}

/// A backend allows and denies a server's tool ahead of time, by its key.
#[tokio::test]
async fn c11_a_backend_decides_about_a_services_tool_by_its_key() {
    let rules = json!({"permissions": {"rules": [{"decision": "ask", "place": "mcp"}]}});
    let far = Far::new(json!([{"name": "old"}]), rules).await;
    let echo = "call mcp_old_echo {\"message\": \"x\"}";
    let grant = |effect: &str| json!({"tool": "old:echo", "effect": effect, "agent": "far"});
    let allowed = far.gateway.post("/api/grants", grant("allow")).await;
    assert_eq!(allowed["grant"]["tool"], "old:echo", "{allowed}");
    assert!(named(&far.finish(&far.say(echo).await).await, "tool-output-available").is_some());
    far.gateway.post("/api/grants", grant("deny")).await;
    let events = far.finish(&far.say(echo).await).await;
    assert_eq!(named(&events, "tool-error").unwrap()["outcome"], "denied", "{events:?}");
    assert_eq!(far.executed("echo"), 1);
    for (tool, status) in [("old:nothing", 404), ("a b:c", 400), ("old:", 400)] {
        let new = json!({"tool": tool, "effect": "allow", "agent": "far"});
        assert_eq!(ask(far.gateway.secret(Method::POST, "/api/grants").json(&new)).await.0, status, "{tool}");
    }
}

/// X6: a server of the operator serves the tenants that it names.
#[tokio::test]
async fn x6_an_operators_server_is_for_the_tenants_it_names() {
    let folder = Folder::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/fixtures/fault_server.py");
    let server = |tenants: Value| {
        json!({"command": python(), "args": ["-u", script, "plain"], "tenants": tenants,
               "env": {"FAULT_LOG": folder.path().join("far-log")}})
    };
    let servers = json!({"mcpServers": {"ours": server(json!(["default"])), "both": server(json!(["default", "acme"]))}});
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, servers.to_string()).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let gateway = Gateway::start_with(folder, &[("TOOLYARD_MCP_SERVERS_FILE", &file)]).await;
    let acme = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let acme = acme["key"].as_str().unwrap();
    let config = json!({"agent": {"name": "far"}, "model": {"provider": "demo", "name": "demo"},
        "mcp": {"servers": [{"name": "ours"}, {"name": "both"}]}});
    let services = async |key: &str| {
        let as_key = |method: Method, path: &str| gateway.bare(method, path).header("x-secret-key", key);
        fine(as_key(Method::POST, "/api/agents").json(&json!({ "config": config }))).await;
        let list = fine(as_key(Method::GET, "/api/tools?agentId=far")).await;
        let of = |name: &str| list["tools"].as_array().unwrap().iter().any(|t| t["serviceId"] == name);
        (of("ours"), of("both"))
    };
    assert_eq!(services(acme).await, (false, true));
    assert_eq!(services(crate::gateway::SECRET).await, (true, true));
}

#[tokio::test]
async fn x4_a_tool_that_changes_is_asked_about_again() {
    let far = Far::new(json!([{"name": "old"}]), json!({})).await;
    let echo = "call mcp_old_echo {\"message\": \"x\"}";
    assert!(named(&far.finish(&far.say(echo).await).await, "tool-output-available").is_some());
    far.finish(&far.say("call mcp_old_swap {}").await).await;
    // The new description is known once the server's list was read again.
    let listed = || async {
        let list = far.gateway.get("/api/mcp/servers").await;
        list["servers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|s| s["name"] == "old" && s["generation"].as_u64() > Some(1))
    };
    eventually("the list is read again", listed).await;
    let run = far.say(echo).await;
    let wait = far.wait_of(&run).await;
    assert_eq!((&wait["kind"], far.executed("echo")), (&json!("approval"), 1), "{wait}");
    far.answer(&wait, json!({"decision": "allow", "remember": "always"})).await;
    far.finish(&run).await;
    // Ann allowed it as it is now.
    assert!(named(&far.finish(&far.say(echo).await).await, "tool-output-available").is_some());
    assert_eq!(far.executed("echo"), 3);
}

#[tokio::test]
async fn x17_agents_cannot_start_programs_and_name_only_known_servers() {
    let far = Far::new(json!([]), json!({})).await;
    let config = |server: Value| {
        json!({"config": {"agent": {"name": "bad"}, "model": {"provider": "demo", "name": "demo"},
                          "mcp": {"servers": [server]}}})
    };
    for server in [
        json!({"name": "x", "command": "sh"}),
        json!({"name": "x", "url": "file:///bin/sh"}),
        json!({"name": "x y"}),
    ] {
        let (status, body) = ask(far.gateway.secret(Method::POST, "/api/agents").json(&config(server))).await;
        assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_config")), "{body}");
    }
}
