//! `readResult`: reads on in a result of the run itself that was cut for the
//! model. It reads before the transaction of its own result.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_protocol::{CallId, TenantId, limits};
use toolyard_store::{Store, StoreError, Tx, blobs, log};

use super::{Action, Way};
use crate::{CallContext, ToolFailure};

/// The name of the action.
pub const READ_RESULT: &str = "readResult";

pub(super) const READ: Action = Action {
    name: READ_RESULT,
    alias: None,
    description: "Read on in a tool result that was cut. The mark at its end names the callId and the offset to go on from.",
    schema,
    way: Way::Read,
};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "callId": {"type": "string", "minLength": 1, "description": "The call whose result is read."},
            "offset": {"type": "integer", "minimum": 0, "description": "Characters to leave out at the beginning. 0 if missing."}
        },
        "required": ["callId"]
    })
}

/// The results of runs, for their own models.
#[derive(Debug, Clone)]
pub struct Results {
    store: Arc<Store>,
    /// Characters that one call reads.
    chars: usize,
}

impl Results {
    /// `tokens` is what a model reads of one result: half of it leaves room for
    /// the signs around the text.
    pub fn new(store: Arc<Store>, tokens: usize) -> Self {
        let half = (tokens.saturating_mul(limits::TOKEN_CHARS) / 2).max(1);
        Self { store, chars: half.min(limits::READ_RESULT_CHARS) }
    }

    pub(crate) async fn call(&self, args: &Value, caller: &CallContext) -> Result<Value, ToolFailure> {
        let name = args.get("callId").and_then(Value::as_str).unwrap_or_default();
        let none = || ToolFailure::TellModel(format!("This run has no result of a call {name:?}"));
        let call = CallId::parse(name).map_err(|_| none())?;
        let offset = args.get("offset").and_then(Value::as_u64).unwrap_or(0);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        // The run is the caller's own: no other can be named.
        let (tenant, run) = (caller.tenant.clone(), caller.run.clone());
        let read = self.store.read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let ended = log::result(tx, &tenant, &run, &call).await?;
                match ended {
                    Some(ended) => whole(tx, &tenant, &ended).await.map(Some),
                    None => Ok(None),
                }
            })
        });
        let text = read.await.map_err(|e| {
            tracing::warn!(error = %e, "a result cannot be read on");
            ToolFailure::TellModel("The result cannot be read right now".to_owned())
        })?;
        let text = text.ok_or_else(none)?;
        let all = text.chars().count();
        let piece: String = text.chars().skip(offset).take(self.chars).collect();
        let end = offset.saturating_add(self.chars);
        let mut answer = json!({"callId": name, "offset": offset, "characters": all, "text": piece});
        if end < all {
            answer["nextOffset"] = json!(end);
        }
        Ok(answer)
    }
}

/// A result as the model reads it, to its end.
async fn whole(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    ended: &toolyard_protocol::event::ToolReturned,
) -> Result<String, StoreError> {
    if let Some(blob) = ended.blob.shown()
        && let Some(bytes) = blobs::get(tx, tenant, &blob.blob).await?
    {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(ended.outcome().for_model())
}
