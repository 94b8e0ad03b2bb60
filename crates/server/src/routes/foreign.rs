//! The part of the table whose words are other people's: AG-UI, CopilotKit,
//! OpenAI's API and MCP.

use serde_json::Value;

use super::route::{Access, BodyKind, Route};
use super::table::{delete, get, post};
use super::{ag_ui, mcp_agent, openai};

pub(super) fn routes() -> Vec<Route> {
    let stream = "text/event-stream";
    vec![
        post("/ag-ui/{agent}", Access::Either, "Run an agent over AG-UI", ag_ui::run)
            .takes::<Value>(BodyKind::Conversation)
            .media(stream),
        get("/copilotkit/info", Access::Either, "The agents, for CopilotKit's clients", ag_ui::info)
            .gives::<Value>(200),
        post("/copilotkit/agent/{agent}/run", Access::Either, "As POST /ag-ui/{agent}", ag_ui::run)
            .takes::<Value>(BodyKind::Conversation)
            .media(stream),
        post(
            "/copilotkit/agent/{agent}/connect",
            Access::Either,
            "Replay a thread with its open calls, and follow it",
            ag_ui::connect,
        )
        .takes::<Value>(BodyKind::Conversation)
        .media(stream),
        post(
            "/copilotkit/agent/{agent}/stop/{thread}",
            Access::Either,
            "Stop what runs in a thread",
            ag_ui::stop,
        )
        .takes::<Value>(BodyKind::Json)
        .gives::<Value>(200),
        post("/v1/chat/completions", Access::Either, "OpenAI: a chat completion", openai::completions)
            .takes::<Value>(BodyKind::Conversation)
            .gives::<Value>(200),
        post("/v1/responses", Access::Either, "OpenAI: a response", openai::respond)
            .takes::<Value>(BodyKind::Conversation)
            .gives::<Value>(200),
        post("/mcp/{agent}", Access::Either, "An agent as an MCP server", mcp_agent::post)
            .takes::<Value>(BodyKind::Conversation)
            .gives::<Value>(200),
        get("/mcp/{agent}", Access::Either, "MCP: the stream of a session", mcp_agent::get).media(stream),
        delete("/mcp/{agent}", Access::Either, "MCP: end a session", mcp_agent::delete),
        get("/v1/models", Access::Either, "OpenAI: the agents as models", openai::models).gives::<Value>(200),
        get("/v1/models/{model}", Access::Either, "OpenAI: one agent as a model", openai::model)
            .gives::<Value>(200),
    ]
}
