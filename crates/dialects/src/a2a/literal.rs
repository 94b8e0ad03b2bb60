//! The form of seeds/001: `params.tools`, `toolCalls` in the pause, and
//! `tasks/resume`. It is no legal extension of the protocol, so it is switched
//! on by the request that uses it, and only in 0.3 over JSON-RPC.

use toolyard_protocol::limits;

use super::client_tools::{self, Answer, Offer};
use super::fault::Fault;
use super::fields::Fields;
use super::version::Version;

/// `params.tools`. Its presence switches the form on.
pub(super) fn offer(fields: &Fields<'_>, version: Version) -> Result<Option<Offer>, Fault> {
    if version != Version::V03 {
        return Ok(None);
    }
    let tools = fields.list("tools")?.cloned();
    Ok(tools.map(|tools| Offer { tools: Some(tools), tool_choice: None, hold: true, literal: true }))
}

/// `params.toolResults` of `tasks/resume`.
pub(super) fn results(fields: &Fields<'_>) -> Result<Vec<Answer>, Fault> {
    let list = fields.list("toolResults")?.ok_or_else(|| fields.wrong("toolResults", "is required"))?;
    if list.is_empty() || list.len() > limits::RESULT_BATCH {
        let most = limits::RESULT_BATCH;
        return Err(fields.wrong("toolResults", format!("must have 1 to {most} results")));
    }
    list.iter()
        .enumerate()
        .map(|(i, value)| client_tools::result(&Fields::of(&fields.at(&format!("toolResults[{i}]")), value)?))
        .collect()
}
