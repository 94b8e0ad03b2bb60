//! Rows U15 to U23, U28, U29 and U31: sources of every vendor and of tools, in
//! every dialect's own form, with words of more than one byte per letter.

use std::sync::{Arc, Mutex};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::gateway::{Folder, Gateway, fine};
use crate::yard::{data, eventually, join, new_space, new_user, read_all};

/// What every vendor says, with a source for the words before the full stop.
const SAID: &str = "Größe zählt 🎉. Ende.";
const MARKED: &str = "Größe zählt 🎉[1]. Ende.";
const URL: &str = "https://example.org/größe";
const TITLE: &str = "Über Größe";

/// The vendors of this test, in one program. It keeps what it is asked.
struct Vendors {
    address: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    _task: tokio::task::JoinSet<()>,
}

impl Vendors {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let mut task = tokio::task::JoinSet::new();
        let kept = asked.clone();
        task.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let kept = kept.clone();
                tokio::spawn(async move { serve(socket, &kept).await });
            }
        });
        Self { address, asked, _task: task }
    }

    /// The last request whose path has this in it.
    fn last(&self, path: &str) -> Value {
        let asked = self.asked.lock().unwrap();
        asked.iter().rev().find(|(line, _)| line.contains(path)).map(|(_, body)| body.clone()).unwrap()
    }
}

async fn serve(mut socket: TcpStream, kept: &Mutex<Vec<(String, Value)>>) -> Option<()> {
    let mut bytes = Vec::new();
    let (line, body) = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length: usize =
                head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                break (head.lines().next()?.to_owned(), bytes[end + 4..].to_vec());
            }
        }
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let answer = stream_of(&line);
    kept.lock().unwrap().push((line, serde_json::from_slice(&body).unwrap_or_default()));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(format!("{head}{answer}").as_bytes()).await.ok()
}

fn frames(events: &[Value]) -> String {
    let frame = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(frame).collect()
}

fn stream_of(line: &str) -> String {
    let cut = SAID.char_indices().nth(8).unwrap().0;
    let (first, second) = SAID.split_at(cut);
    if line.contains("chat/completions") {
        let delta = |delta: Value, end: Value| json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
        // This vendor counts characters.
        let cited = json!({"content": "", "annotations": [{"type": "url_citation", "url_citation": {"url": URL, "title": TITLE, "start_index": 0, "end_index": 13}}]});
        let events = [
            delta(json!({"role": "assistant", "content": first}), Value::Null),
            delta(json!({"content": second}), Value::Null),
            delta(cited, Value::Null),
            delta(json!({}), json!("stop")),
        ];
        frames(&events) + "data: [DONE]\n\n"
    } else if line.contains("/responses") {
        let cited =
            json!({"type": "url_citation", "start_index": 0, "end_index": 13, "url": URL, "title": TITLE});
        let place = |kind: &str, more: Value| {
            let mut event = json!({"type": kind, "item_id": "m1", "output_index": 0, "content_index": 0});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let item = json!({"id": "m1", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "annotations": [cited.clone()], "text": SAID}]});
        let response = |status: &str, output: Value| {
            json!({"id": "r", "model": "m", "status": status, "error": null,
            "incomplete_details": null, "output": output, "usage": {"input_tokens": 1, "output_tokens": 1}})
        };
        frames(&[
            json!({"type": "response.created", "response": response("in_progress", json!([]))}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"id": "m1", "type": "message", "status": "in_progress", "content": [], "role": "assistant"}}),
            place("response.output_text.delta", json!({"delta": first})),
            place("response.output_text.delta", json!({"delta": second})),
            place(
                "response.output_text.annotation.added",
                json!({"annotation_index": 0, "annotation": cited}),
            ),
            place("response.output_text.done", json!({"text": SAID})),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response("completed", json!([item]))}),
        ])
    } else if line.contains("/messages") {
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
        let cited = json!({"type": "web_search_result_location", "url": URL, "title": TITLE, "encrypted_index": "E", "cited_text": "g"});
        frames(&[
            json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}}),
            delta(json!({"type": "citations_delta", "citation": cited})),
            delta(json!({"type": "text_delta", "text": first})),
            delta(json!({"type": "text_delta", "text": second})),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ])
    } else {
        // This vendor counts bytes.
        let end = SAID.find('.').unwrap();
        let piece = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}], "modelVersion": "g", "responseId": "r"});
        let ground = json!({"groundingChunks": [{"web": {"uri": URL, "title": TITLE}}],
            "groundingSupports": [{"segment": {"endIndex": end, "text": &SAID[..end]}, "groundingChunkIndices": [0]}]});
        let last = json!({"candidates": [{"content": {"parts": [], "role": "model"}, "index": 0, "finishReason": "STOP", "groundingMetadata": ground}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "g", "responseId": "r"});
        frames(&[piece(first), piece(second), last])
    }
}

/// The gateway of all these stories.
struct Library {
    gateway: Gateway,
    vendors: Vendors,
    ann: String,
}

const VENDORS: [(&str, &str, &str); 4] = [
    ("chat", "openai", "chat/completions"),
    ("responses", "openai-responses", "/responses"),
    ("anthropic", "anthropic", "/messages"),
    ("gemini", "gemini", "generatecontent"),
];

impl Library {
    async fn open() -> Self {
        let vendors = Vendors::start().await;
        let folder = Folder::new();
        let config: String = VENDORS
            .iter()
            .map(|(name, kind, _)| {
                let base = format!("http://{}/v1", vendors.address);
                format!("[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{base}\"\napi_key_env = \"FAR_KEY\"\n")
            })
            .collect();
        std::fs::write(folder.path().join("toolyard.toml"), config).unwrap();
        let gateway = Gateway::start_with(folder, &[("FAR_KEY", "sk-test")]).await;
        let ann = new_user(&gateway, "ann").await;
        Self { gateway, vendors, ann }
    }

    async fn agent(&self, name: &str, provider: &str, more: Value) {
        let mut config =
            json!({"agent": {"name": name}, "model": {"provider": provider, "name": "m"}, "tools": []});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.gateway.post("/api/agents", json!({ "config": config })).await;
    }

    async fn text(&self, request: RequestBuilder) -> Vec<Value> {
        let body = request.send().await.unwrap().text().await.unwrap();
        body.lines().filter_map(|l| serde_json::from_str(l.strip_prefix("data: ")?).ok()).collect()
    }

    /// The native stream: events with their names.
    async fn native(&self, agent: &str, say: &str) -> Vec<(String, Value)> {
        let made = self.gateway.post("/api/entities/agent", json!({"agentId": agent})).await;
        let space = new_space(&self.gateway).await;
        join(&self.gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
        join(&self.gateway, &space, &self.ann).await;
        let path = format!("/api/smart-spaces/{space}/messages");
        let posted = fine(self.gateway.user("ann", Method::POST, &path).json(&json!({"content": say}))).await;
        let run = posted["runs"][0]["runId"].as_str().unwrap();
        let stream =
            self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap();
        let events = read_all(stream).await;
        events.iter().map(|e| (e.event.clone().unwrap_or_default(), data(e))).collect()
    }

    async fn ai_sdk(&self, agent: &str, say: &str) -> Vec<Value> {
        let body = json!({"id": format!("c-{agent}-{}", say.len()), "agent": agent,
            "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": say}]}]});
        self.text(self.gateway.secret(Method::POST, "/api/chat").json(&body)).await
    }

    async fn ag_ui(&self, agent: &str, say: &str) -> Vec<Value> {
        let body = json!({"threadId": format!("t-{agent}"), "runId": "r", "protocolVersion": "1.0",
            "messages": [{"id": "u1", "role": "user", "content": say}]});
        self.text(self.gateway.secret(Method::POST, &format!("/ag-ui/{agent}")).json(&body)).await
    }

    async fn a2a(&self, agent: &str, say: &str) -> Value {
        let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": say}]});
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
        let request =
            self.gateway.secret(Method::POST, &format!("/a2a/{agent}")).header("a2a-version", "1.0");
        let answer = fine(request.json(&body)).await;
        answer["result"]["task"]["artifacts"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"))
            .last()
            .unwrap()
            .clone()
    }

    /// The event of an answer in every dialect; gives its citations.
    async fn tells(&self, agent: &str, say: &str, event: &str) -> Vec<Value> {
        let native = self.native(agent, say).await;
        let told: Vec<&Value> =
            native.iter().filter(|(name, _)| name == "plugin.emitted").map(|(_, e)| e).collect();
        assert_eq!(told.len(), 1, "{native:?}");
        assert_eq!(told[0]["name"], event);
        let citations = told[0]["value"]["citations"].as_array().unwrap().clone();

        let chat = self.ai_sdk(agent, say).await;
        let typed = |kind: &str| chat.iter().filter(|c| c["type"] == kind).collect::<Vec<_>>();
        let part = typed(&format!("data-{event}"));
        assert_eq!(part.len(), 1, "{chat:?}");
        assert_eq!(part[0]["data"]["citations"], json!(citations), "{agent}");
        assert_eq!(part[0]["data"]["messageId"], typed("start")[0]["messageId"], "{agent}");
        let of = |kind: &str| citations.iter().filter(|c| c["type"] == kind).count();
        let (urls, documents) = (typed("source-url"), typed("source-document"));
        assert_eq!((urls.len(), documents.len()), (of("url"), of("document")), "{agent}: {chat:?}");
        for (part, cited) in urls.iter().zip(citations.iter().filter(|c| c["type"] == "url")) {
            assert_eq!((&part["url"], &part["title"]), (&cited["url"], &cited["title"]), "{agent}");
        }
        for part in documents {
            assert!(
                part["mediaType"].is_string() && part["title"].is_string() && part["sourceId"].is_string()
            );
        }

        let ag_ui = self.ag_ui(agent, say).await;
        let custom: Vec<&Value> =
            ag_ui.iter().filter(|e| e["type"] == "CUSTOM" && e["name"] == event).collect();
        assert_eq!(custom.len(), 1, "{ag_ui:?}");
        assert_eq!(custom[0]["value"]["citations"], json!(citations), "{agent}");
        let started = ag_ui.iter().rev().find(|e| e["type"] == "TEXT_MESSAGE_START").unwrap();
        assert_eq!(custom[0]["value"]["messageId"], started["messageId"], "{agent}");
        assert!(custom[0]["timestamp"].is_number());

        let artifact = self.a2a(agent, say).await;
        assert_eq!(artifact["metadata"][event], json!(citations), "{artifact}");
        citations
    }
}

#[tokio::test]
async fn u17_u18_u19_u20_u31_every_vendors_sources_are_told_in_every_dialect() {
    let library = Library::open().await;
    for (name, _, _) in VENDORS {
        library.agent(name, name, json!({})).await;
        let citations = library.tells(name, "what counts?", "citation").await;
        let mut expected = json!({"id": "cite-1", "number": 1, "type": "url", "url": URL, "title": TITLE});
        let placed = name != "anthropic";
        if placed {
            (expected["startIndex"], expected["endIndex"]) = (json!(0), json!(13));
        }
        assert_eq!(citations, [expected], "{name}");
        let text = if placed { MARKED } else { SAID };
        let artifact = library.a2a(name, "and now?").await;
        assert_eq!(artifact["parts"][0]["text"], text, "{name}");
        // What was streamed without a mark is corrected.
        let chat = library.ai_sdk(name, "again").await;
        let replaced: Vec<&Value> = chat
            .iter()
            .filter(|c| c["type"] == "data-message-replaced")
            .map(|c| &c["data"]["text"])
            .collect();
        let corrected = json!(MARKED);
        assert_eq!(replaced, if placed { vec![&corrected] } else { vec![] }, "{name}");
        // OpenAI's own protocols have a word for sources.
        let asked = json!({"model": name, "messages": [{"role": "user", "content": "what counts?"}]});
        let done = library.gateway.post("/v1/chat/completions", asked).await;
        let annotation = &done["choices"][0]["message"]["annotations"][0];
        assert_eq!(
            (&annotation["type"], &annotation["url_citation"]["url"]),
            (&json!("url_citation"), &json!(URL)),
            "{done}"
        );
        let done =
            library.gateway.post("/v1/responses", json!({"model": name, "input": "what counts?"})).await;
        let item = done["output"].as_array().unwrap().iter().find(|i| i["type"] == "message").unwrap();
        let annotation = &item["content"][0]["annotations"][0];
        assert_eq!((&annotation["url"], &annotation["title"]), (&json!(URL), &json!(TITLE)), "{done}");
        if placed {
            assert_eq!((&annotation["start_index"], &annotation["end_index"]), (&json!(0), &json!(13)));
        }
    }
}

#[tokio::test]
async fn u15_an_agent_names_the_event_and_chooses_footnotes_or_nothing() {
    let library = Library::open().await;
    let options = json!({"eventName": "references", "markers": "footnote"});
    library.agent("notes", "chat", json!({"plugins": [{"id": "citations", "options": options}]})).await;
    library.tells("notes", "what counts?", "references").await;
    let artifact = library.a2a("notes", "what counts?").await;
    assert_eq!(artifact["parts"][0]["text"], MARKED.replace("[1]", "[^1]"));
    // A name that means something else already is not taken.
    let options = json!({"eventName": "message-replaced", "inlineMarkers": false});
    library.agent("sly", "chat", json!({"plugins": [{"id": "citations", "options": options}]})).await;
    let chat = library.ai_sdk("sly", "what counts?").await;
    let kinds: Vec<&str> = chat.iter().filter_map(|c| c["type"].as_str()?.strip_prefix("data-")).collect();
    assert_eq!(kinds, ["citation"], "{chat:?}");
    library.agent("silent", "chat", json!({"plugins": []})).await;
    let native = library.native("silent", "what counts?").await;
    assert!(native.iter().all(|(name, _)| name != "plugin.emitted"), "{native:?}");
}

#[tokio::test]
async fn u26_documents_of_the_knowledge_base_and_of_other_tools_are_cited() {
    let library = Library::open().await;
    let upload = library.gateway.secret(Method::POST, "/api/knowledge?title=Gr%C3%B6%C3%9Fen");
    let made = fine(
        upload.header("content-type", "text/plain").body("Größe zählt 🎉 und Rückgaben dauern zehn Tage."),
    )
    .await;
    let document = made["document"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/knowledge/{document}");
    eventually("the document is ready", async || {
        library.gateway.get(&path).await["document"]["status"] == "ready"
    })
    .await;
    library.agent("reader", "demo", json!({"prebuilt": "all"})).await;
    let say = "call searchKnowledge {\"query\":\"Rückgaben\"}";
    let citations = library.tells("reader", say, "citation").await;
    let cited = &citations[0];
    assert_eq!((&cited["type"], &cited["documentId"]), (&json!("document"), &json!(document)));
    assert_eq!((&cited["title"], &cited["toolName"]), (&json!("Größen"), &json!("searchKnowledge")));
    assert!(cited["snippet"].as_str().unwrap().contains("Größe zählt 🎉"), "{cited}");

    let hits = json!({"hits": [
        {"meta": {"key": "doc-7", "head": "Maße"}, "body": "Größe zählt 🎉"},
        {"meta": {"link": "https://intern.example/ß", "head": "Regeln"}, "body": "…"},
        {"meta": {}},
    ]});
    let tool = json!({"name": "lookup", "description": "Looks it up.", "execution": {"mode": "static", "output": hits}});
    let options = json!({"tools": ["lookup"], "list": "/hits", "documentId": "/meta/key", "url": "/meta/link",
        "title": "/meta/head", "snippet": "/body", "eventName": "rag"});
    let plugins = json!([{"id": "rag-citations", "options": options}]);
    library.agent("own", "demo", json!({"tools": [tool], "plugins": plugins})).await;
    let citations = library.tells("own", "call lookup {}", "rag").await;
    assert_eq!(
        citations,
        [
            json!({"id": "rag-1", "number": 1, "type": "document", "documentId": "doc-7", "title": "Maße",
                "snippet": "Größe zählt 🎉", "toolName": "lookup"}),
            json!({"id": "rag-2", "number": 2, "type": "url", "url": "https://intern.example/ß", "title": "Regeln"}),
        ]
    );
}

#[tokio::test]
async fn u1_u6_provider_tools_reach_their_vendor_and_no_other() {
    let library = Library::open().await;
    let tools = json!({
        "openai": [{"type": "web_search", "user_location": {"city": "Köln"}}],
        "anthropic": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
        "gemini": [{"googleSearch": {}}],
    });
    let own = json!({"name": "echo", "description": "Says it again.", "execution": {"mode": "pass-through"}});
    for (name, kind, path) in VENDORS {
        library.agent(name, name, json!({"providerTools": tools, "tools": [own]})).await;
        library.native(name, "what counts?").await;
        let mut sent = library.vendors.last(path)["tools"].as_array().unwrap().clone();
        let vendor = kind.split('-').next().unwrap();
        assert_eq!(sent.len(), 2, "{name}: {sent:?}");
        // The last tool carries the mark of the prompt cache, where there is one.
        sent[1].as_object_mut().unwrap().remove("cache_control");
        assert_eq!(sent[1], tools[vendor][0], "{name}");
    }
    // A plugin may take them away.
    let document = json!({"id": "offline", "name": "offline", "version": "1.0.0", "tools": [],
        "hooks": {"onUserMessage": "delete input.providerTools; return input"}});
    let (status, body) = crate::plugins::install(&library.gateway, &document).await;
    assert_eq!(status, 200, "{body}");
    library.agent("chat", "chat", json!({"providerTools": tools, "plugins": ["offline"]})).await;
    library.native("chat", "what counts?").await;
    assert_eq!(library.vendors.last("chat/completions").get("tools"), None);
}
