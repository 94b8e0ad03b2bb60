//! MCP clients of an agent hear when its tools change, in both eras.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Gateway, PATIENCE};
use crate::mcp_agent::{Modern, Program, initialize};
use crate::yard::Stream;

/// The agent, with one more tool each time.
async fn change(gateway: &Gateway, n: usize) {
    let tool = |n: usize| {
        json!({"name": format!("lucky{n}"), "description": "A number",
            "execution": {"mode": "static", "output": {"number": n}}})
    };
    let config = json!({
        "agent": {"name": "story"}, "model": {"provider": "demo", "name": "demo"},
        "mcpServer": {"tools": "all"}, "tools": (0..n).map(tool).collect::<Vec<_>>(),
    });
    gateway.post("/api/agents", json!({ "config": config })).await;
}

/// Changes the agent again and again until the news has come: who has just
/// come may take the newest list for the first one.
async fn until_heard(gateway: &Gateway, heard: impl Future<Output = Value>) -> usize {
    let mut heard = std::pin::pin!(tokio::time::timeout(PATIENCE, heard));
    for n in 1.. {
        change(gateway, n).await;
        let a_look = tokio::time::sleep(std::time::Duration::from_secs(1));
        tokio::select! {
            news = &mut heard => {
                assert_eq!(news.expect("no news")["method"], "notifications/tools/list_changed");
                return n;
            }
            () = a_look => {}
        }
    }
    unreachable!()
}

#[tokio::test]
async fn a_client_of_2025_11_25_hears_of_new_tools_over_stdio() {
    let gateway = Gateway::start().await;
    change(&gateway, 0).await;
    let mut program = Program::start(&gateway);
    program.say(&initialize().to_string()).await;
    let hello = program.answer(0).await;
    let capabilities = &hello["result"]["capabilities"];
    assert_eq!(capabilities["tools"], json!({ "listChanged": true }), "{hello}");
    // What an agent does not have is not claimed. Who asks all the same gets none.
    assert!(capabilities.get("prompts").is_none() && capabilities.get("resources").is_none(), "{hello}");
    program.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
    let lists = [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ];
    for (id, (method, field)) in (10..).zip(lists) {
        let nothing = program.ask(id, method).await;
        assert_eq!(nothing["result"][field], json!([]), "{nothing}");
    }
    let read = program.ask(20, "resources/read").await;
    assert!(read["error"]["code"].as_i64().is_some_and(|code| code < 0), "{read}");
    let n = until_heard(&gateway, program.news()).await;
    let listed = program.ask(1, "tools/list").await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), n + 1, "{listed}");
}

#[tokio::test]
async fn a_client_of_2026_07_28_hears_of_new_tools_on_its_stream() {
    let gateway = Gateway::start().await;
    change(&gateway, 0).await;
    let client = Modern::new(&gateway, json!({}));
    let wanted = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
    let response = client.request("subscriptions/listen", wanted).send().await.unwrap();
    let mut stream = Stream::new(response);
    let heard = async {
        loop {
            let event = stream.next().await.expect("the stream ended");
            let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if message["method"] == "notifications/tools/list_changed" {
                return message;
            }
        }
    };
    let n = until_heard(&gateway, heard).await;
    let listed = client.result("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), n + 1, "{listed}");
    drop(stream);
    assert_eq!(gateway.secret(Method::GET, "/health").send().await.unwrap().status(), 200);
}
