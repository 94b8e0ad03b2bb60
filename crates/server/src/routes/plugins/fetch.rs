//! Reads a plugin's document from an address, for a page that may talk to this
//! gateway only. Nothing is installed: people look at it first.

use std::time::Duration;

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_egress::{Letter, Patience, Verb};
use toolyard_protocol::limits;

use super::super::answer;
use super::super::call::Call;
use crate::http::Refusal;
use crate::registry;

const PATIENCE: Patience = Patience {
    head: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    bytes: limits::PLUGIN_BYTES as u64,
};

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FetchPlugin {
    /// Where the document lies.
    url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FetchedPlugin {
    /// The document, as it lies there.
    plugin: Value,
}

/// `POST /api/plugins/fetch`
pub(super) async fn fetch(call: Call) -> Result<Response, Refusal> {
    let FetchPlugin { url } = call.json()?;
    let refused = |why: String| Refusal::bad_request(format!("url: {why}"));
    let door = &call.app.guarded;
    let target = door.target(&url).map_err(|e| refused(e.to_string()))?;
    let letter = Letter {
        verb: Verb::Get,
        target: &target,
        headers: &[],
        accept: "application/json",
        body: None,
        patience: PATIENCE,
    };
    let whole = door.ask(letter, PATIENCE.head * 2).await.map_err(|e| refused(e.to_string()))?;
    if whole.status != 200 {
        return Err(refused(format!("the server answered {}", whole.status)));
    }
    // What is no plugin is not passed on: this is no way to read other things.
    registry::read(whole.body.clone()).await?;
    let plugin = serde_json::from_slice(&whole.body).map_err(|_| refused("no JSON".to_owned()))?;
    answer::json(200, &FetchedPlugin { plugin })
}
