//! One run, several doors: what starts in one dialect is watched, answered and
//! approved in every other that has a word for it.
//!
//! The table is start × watch × answer, start × watch × approve and start ×
//! cancel over five doors. Each run is started by one door, watched through all of them while it
//! waits, and ended by one. What a door has no word for is named in
//! [`impossible`] with its reason, and nowhere else.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::gateway::{Gateway, PATIENCE, ask, fine};
use crate::yard::{Stream, eventually, join, new_space, new_user};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Native,
    AiSdk,
    AgUi,
    A2a,
    OpenAi,
}

const DOORS: [Door; 5] = [Door::Native, Door::AiSdk, Door::AgUi, Door::A2a, Door::OpenAi];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Start,
    Watch,
    Answer,
    Approve,
    Cancel,
}

/// What a door has no word for, and why.
fn impossible(door: Door, deed: Deed) -> Option<&'static str> {
    match (door, deed) {
        (Door::OpenAi, Deed::Watch) => Some(
            "a completion answers its own request: OpenAI's API has no word for looking at a run of others",
        ),
        (Door::OpenAi, Deed::Cancel) => {
            Some("OpenAI's API cancels responses that run in its background, and has no others")
        }
        (Door::Native | Door::AiSdk | Door::AgUi | Door::A2a | Door::OpenAi, _) => None,
    }
}

const CLIENT_TOOLS: &str = "urn:toolyard:a2a:ext/client-tools/v1";

fn agent() -> Value {
    let object = json!({ "type": "object", "properties": {} });
    json!({
        "agent": { "name": "story" }, "model": { "provider": "demo", "name": "demo" },
        "tools": [
            { "name": "here", "description": "Runs at a client", "inputSchema": object },
            { "name": "delete_thing", "description": "Removes a thing", "inputSchema": object,
              "approval": "ask", "visibility": "public",
              "execution": { "mode": "static", "output": { "thing": "gone" } } },
        ],
    })
}

struct World {
    gateway: Gateway,
    agent_entity: String,
    ann: String,
}

/// A run that waits, as the ledger knows it.
struct Paused {
    run: String,
    space: String,
    call: String,
    wait: String,
    /// The agent's message so far.
    message: String,
    said: &'static str,
}

impl World {
    async fn new() -> Self {
        let gateway = Gateway::start().await;
        gateway.post("/api/agents", json!({ "config": agent() })).await;
        let made = gateway.post("/api/entities/agent", json!({ "agentId": "story" })).await;
        let agent_entity = made["entity"]["id"].as_str().unwrap().to_owned();
        let ann = new_user(&gateway, "ann").await;
        Self { gateway, agent_entity, ann }
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.gateway.user("ann", Method::POST, path).json(body)
    }

    async fn text(&self, request: RequestBuilder) -> String {
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
        text
    }

    fn a2a(&self, method: &str, params: Value) -> RequestBuilder {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post("/a2a/story", &body).header("a2a-version", "1.0").header("a2a-extensions", CLIENT_TOOLS)
    }

    /// Says something new; the run that it starts comes to its pause.
    async fn start(&self, door: Door, said: &'static str, n: usize) -> Paused {
        match door {
            Door::Native => {
                let space = new_space(&self.gateway).await;
                join(&self.gateway, &space, &self.agent_entity).await;
                join(&self.gateway, &space, &self.ann).await;
                let path = format!("/api/smart-spaces/{space}/messages");
                fine(self.post(&path, &json!({ "content": said }))).await;
            }
            Door::AiSdk => {
                let message = json!({ "id": format!("u-{n}"), "role": "user", "parts": [{ "type": "text", "text": said }] });
                let body = json!({ "id": format!("chat-{n}"), "agent": "story", "messages": [message] });
                self.text(self.post("/api/chat", &body)).await;
            }
            Door::AgUi => {
                let message = json!({ "id": format!("u-{n}"), "role": "user", "content": said });
                let body = ag_ui(&format!("thread-{n}"), json!([message]));
                self.text(self.post("/ag-ui/story", &body)).await;
            }
            Door::A2a => {
                let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": said }] });
                self.text(self.a2a("SendMessage", json!({ "message": message }))).await;
            }
            Door::OpenAi => {
                let body = json!({ "model": "story", "messages": [{ "role": "user", "content": said }] });
                self.text(self.post("/v1/chat/completions", &body)).await;
            }
        }
        self.paused(said).await
    }

    /// The one run that waits now.
    async fn paused(&self, said: &'static str) -> Paused {
        eventually("the run waits", || async {
            self.gateway.get("/api/runs?status=waiting_tool").await["runs"].as_array().unwrap().len() == 1
        })
        .await;
        let waits = self.gateway.get("/api/waits").await;
        let [wait] = waits["waits"].as_array().unwrap().as_slice() else { panic!("{waits}") };
        let text = |name: &str| wait[name].as_str().unwrap_or_else(|| panic!("{name}: {wait}")).to_owned();
        let space = text("smartSpaceId");
        let messages = self.gateway.get(&format!("/api/smart-spaces/{space}/messages")).await;
        let own = messages["messages"].as_array().unwrap().iter().rfind(|m| m["role"] == "assistant");
        let message = own.unwrap_or_else(|| panic!("{messages}"))["id"].as_str().unwrap().to_owned();
        Paused { run: text("runId"), call: text("toolCallId"), wait: text("id"), space, message, said }
    }

    /// The pause, in the words of a door.
    async fn watch(&self, door: Door, paused: &Paused) -> String {
        match door {
            Door::Native => {
                let path = format!("/api/runs/{}/stream", paused.run);
                let response = self.gateway.user("ann", Method::GET, &path).send().await.unwrap();
                let mut stream = Stream::new(response);
                let mut heard = String::new();
                loop {
                    let event = stream.next().await.expect("the stream ended");
                    heard.push_str(&event.data);
                    if event.event.as_deref() == Some("run.waiting_tool") {
                        return heard;
                    }
                }
            }
            Door::AiSdk => {
                let path = format!("/api/chat/{}/stream", paused.space);
                self.text(self.gateway.user("ann", Method::GET, &path)).await
            }
            Door::AgUi => {
                let body = ag_ui(&paused.space, json!([]));
                self.text(self.post("/copilotkit/agent/story/connect", &body)).await
            }
            Door::A2a => {
                let request = self.a2a("SubscribeToTask", json!({ "id": paused.run }));
                let mut stream = Stream::new(request.send().await.unwrap());
                stream.next().await.expect("the stream ended").data
            }
            Door::OpenAi => unreachable!("named in the table"),
        }
    }

    /// Hands in a client's result. What the door says to it, if it says something.
    async fn answer(&self, door: Door, paused: &Paused, result: &str) -> Option<String> {
        let Paused { run, space, call, message, said, .. } = paused;
        let request = match door {
            Door::Native => {
                let body = json!({ "callId": call, "result": result });
                fine(self.post(&format!("/api/runs/{run}/tool-results"), &body)).await;
                return None;
            }
            Door::AiSdk => {
                let part = json!({ "type": "tool-here", "toolCallId": call, "state": "output-available",
                    "input": {}, "output": result });
                self.post("/api/chat", &ai_sdk(space, message, part))
            }
            Door::AgUi => {
                let tool = json!({ "id": format!("r-{call}"), "role": "tool", "toolCallId": call, "content": result });
                self.post("/ag-ui/story", &ag_ui(space, json!([tool])))
            }
            Door::A2a => {
                let data =
                    json!({ "type": "tool-result", "toolCallId": call, "success": true, "result": result });
                self.a2a("SendMessage", a2a_reply(run, data))
            }
            Door::OpenAi => {
                let function = json!({ "name": "here", "arguments": "{}" });
                let calls = json!([{ "id": call, "type": "function", "function": function }]);
                let messages = json!([
                    { "role": "user", "content": said },
                    { "role": "assistant", "content": null, "tool_calls": calls },
                    { "role": "tool", "tool_call_id": call, "content": result },
                ]);
                self.post("/v1/chat/completions", &json!({ "model": "story", "messages": messages }))
            }
        };
        Some(self.text(request).await)
    }

    /// Says yes. What the door says to it, if it says something.
    async fn approve(&self, door: Door, paused: &Paused) -> Option<String> {
        let Paused { run, space, call, wait, message, .. } = paused;
        let request = match door {
            Door::Native => {
                fine(self.post(&format!("/api/waits/{wait}/answer"), &json!({ "decision": "allow" }))).await;
                return None;
            }
            Door::AiSdk => {
                let part = json!({ "type": "tool-delete_thing", "toolCallId": call, "state": "approval-responded",
                    "input": {}, "approval": { "id": wait, "approved": true } });
                self.post("/api/chat", &ai_sdk(space, message, part))
            }
            Door::AgUi => {
                let mut body = ag_ui(space, json!([]));
                body["resume"] =
                    json!([{ "interruptId": wait, "status": "resolved", "payload": { "approved": true } }]);
                self.post("/ag-ui/story", &body)
            }
            Door::A2a => {
                let data = json!({ "type": "approval-response", "waitId": wait, "decision": "allow" });
                self.a2a("SendMessage", a2a_reply(run, data))
            }
            Door::OpenAi => {
                let yes =
                    json!({ "type": "mcp_approval_response", "approval_request_id": wait, "approve": true });
                self.post("/v1/responses", &json!({ "model": "story", "input": [yes] }))
            }
        };
        Some(self.text(request).await)
    }

    /// Stops the run.
    async fn cancel(&self, door: Door, paused: &Paused) {
        let Paused { run, space, .. } = paused;
        let request = match door {
            // Natively a run is stopped by a backend.
            Door::Native => {
                let path = format!("/api/runs/{run}/cancel");
                self.gateway.secret(Method::POST, &path).json(&json!({}))
            }
            Door::AiSdk => self.post(&format!("/api/chat/{space}/stop"), &json!({})),
            Door::AgUi => self.post(&format!("/copilotkit/agent/story/stop/{space}"), &json!({})),
            Door::A2a => self.a2a("CancelTask", json!({ "id": run })),
            Door::OpenAi => unreachable!("named in the table"),
        };
        let told = fine(request).await;
        assert!(told.get("error").is_none(), "{door:?}: {told}");
    }

    /// The run has ended, and its last words.
    async fn last_words(&self, paused: &Paused) -> String {
        eventually("the run ends", || async {
            self.gateway.get(&format!("/api/runs/{}", paused.run)).await["run"]["status"] == "completed"
        })
        .await;
        self.gateway.get(&format!("/api/smart-spaces/{}/messages", paused.space)).await.to_string()
    }
}

fn ag_ui(thread: &str, messages: Value) -> Value {
    json!({ "threadId": thread, "runId": "r", "protocolVersion": "1.0", "messages": messages })
}

fn ai_sdk(space: &str, message: &str, part: Value) -> Value {
    let own = json!({ "id": message, "role": "assistant", "parts": [part] });
    json!({ "id": space, "agent": "story", "messages": [own], "trigger": "submit-message", "messageId": message })
}

fn a2a_reply(run: &str, data: Value) -> Value {
    json!({ "message": { "messageId": "m-2", "role": "ROLE_USER", "taskId": run, "parts": [{ "data": data }] } })
}

/// Every cell of one table; answers how many there were.
async fn every_cell(deed: Deed) -> usize {
    let world = World::new().await;
    let (mut cells, mut n) = (0, 0);
    for start in DOORS.into_iter().filter(|door| impossible(*door, Deed::Start).is_none()) {
        for end in DOORS.into_iter().filter(|door| impossible(*door, deed).is_none()) {
            n += 1;
            let said = if deed == Deed::Answer { "call here {}" } else { "call delete_thing {}" };
            let paused = world.start(start, said, n).await;
            for watch in DOORS.into_iter().filter(|door| impossible(*door, Deed::Watch).is_none()) {
                let told = tokio::time::timeout(PATIENCE, world.watch(watch, &paused)).await;
                let told = told.unwrap_or_else(|_| panic!("{start:?} × {watch:?}: nothing was told"));
                // A door names the call, or what it waits for.
                let named = told.contains(&paused.call) || told.contains(&paused.wait);
                assert!(named, "{start:?} × {watch:?} × {end:?}: {told}");
                cells += 1;
            }
            let result = format!("from-{end:?}");
            let (told, expected) = match deed {
                Deed::Answer => (world.answer(end, &paused, &result).await, result.as_str()),
                _ => (world.approve(end, &paused).await, "gone"),
            };
            if let Some(told) = told {
                assert!(told.contains(expected), "{start:?} × {end:?}: {told}");
            }
            let words = world.last_words(&paused).await;
            assert!(words.contains(expected), "{start:?} × {end:?}: {words}");
            assert_eq!(world.gateway.get("/api/waits").await["waits"], json!([]), "{start:?} × {end:?}");
        }
    }
    cells
}

#[tokio::test]
async fn row5_every_door_answers_what_every_other_started() {
    assert_eq!(every_cell(Deed::Answer).await, 5 * 4 * 5);
}

#[tokio::test]
async fn row5_every_door_approves_what_every_other_started() {
    assert_eq!(every_cell(Deed::Approve).await, 5 * 4 * 5);
}

/// A run ends over every door that has a word for it, whoever started it; what
/// it waited for is closed, and a result that comes later changes nothing.
#[tokio::test]
async fn row5_every_door_cancels_what_every_other_started() {
    let world = World::new().await;
    let mut n = 100;
    for start in DOORS {
        for end in DOORS.into_iter().filter(|door| impossible(*door, Deed::Cancel).is_none()) {
            n += 1;
            let paused = world.start(start, "call here {}", n).await;
            world.cancel(end, &paused).await;
            let run = format!("/api/runs/{}", paused.run);
            eventually(&format!("{start:?} × {end:?}"), || async {
                world.gateway.get(&run).await["run"]["status"] == "canceled"
            })
            .await;
            assert_eq!(world.gateway.get("/api/waits").await["waits"], json!([]), "{start:?} × {end:?}");
            let late = json!({ "callId": paused.call, "result": "late" });
            let (status, body) = ask(world.post(&format!("{run}/tool-results"), &late)).await;
            assert_eq!(status, 409, "{start:?} × {end:?}: {body}");
        }
    }
    assert_eq!(n, 120, "five doors start, four cancel");
}
