//! The agent `tck` of development mode: what the public compatibility kit talks
//! to. It is stored when somebody first asks for it, and it runs on the same
//! engine as every other agent.

use serde_json::json;
use toolyard_runtime::tck;
use toolyard_store::{StoreError, agents};

use super::place::Place;
use crate::config::Mode;
use crate::http::Refusal;
use crate::routes::call::Call;

pub(super) async fn ensure(call: &Call, place: &Place) -> Result<(), Refusal> {
    if place.agent.as_str() != "tck" || call.app.config.mode != Mode::Development {
        return Ok(());
    }
    let (tenant, name) = (call.tenant().clone(), place.agent.clone());
    let there = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move { agents::by_name(tx, &tenant, &name).await })
    });
    if there.await?.is_some() {
        return Ok(());
    }
    let config = json!({
        "version": "1",
        "agent": { "name": "tck", "description": "Plays the part that the A2A compatibility kit asks for." },
        "model": { "provider": "tck", "name": "tck" },
        "loop": { "maxSteps": 50 },
        "tools": [{
            "name": tck::ASK,
            "description": "Asks the user.",
            "inputSchema": { "type": "object", "properties": { "question": { "type": "string" } } },
        }],
    });
    let (tenant, name) = (call.tenant().clone(), place.agent.clone());
    call.store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move { agents::upsert(tx, &tenant, &name, &config).await })
        })
        .await?;
    Ok(())
}
