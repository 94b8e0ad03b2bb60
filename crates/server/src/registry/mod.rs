//! The way of a plugin: submitted, reviewed, signed, published, installed,
//! revoked. Routes and the command line walk it by these functions.
//!
//! What takes time (reading a document, the audit, signing) happens before a
//! transaction; the transaction decides on what it finds itself.

mod install;
mod revoke;
mod trust;
mod versions;

pub(crate) use install::{install, switch, uninstall, usable};
pub(crate) use revoke::{Revoke, revoke};
pub(crate) use trust::{TrustCurator, add_key, trust};
pub(crate) use versions::{Ready, Signing, newest_signed, publish, put_signature, review, submit};

use toolyard_plugins::bundle::{BadDocument, Candidate, Refused};
use toolyard_protocol::{ApiError, ErrorCode, TenantId};
use toolyard_runtime::PluginRules;

use crate::http::Refusal;

/// For whom, by whom, and under which rules.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) tenant: TenantId,
    /// For the audit.
    pub(crate) actor: String,
    pub(crate) rules: PluginRules,
}

/// Work that would hold up others, on a thread for such work.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(ErrorCode::Internal, "Something went wrong inside the gateway.");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// Reads a document.
pub(crate) async fn read(text: impl AsRef<[u8]> + Send + 'static) -> Result<Candidate, Refusal> {
    aside(move || Candidate::read(text.as_ref())).await?.map_err(malformed)
}

pub(crate) fn malformed(why: BadDocument) -> Refusal {
    ApiError::new(ErrorCode::InvalidPlugin, why.to_string()).into()
}

/// Says no, and says it in the log with the plugin's id (row H58).
pub(crate) fn refused(candidate: &Candidate, why: &Refused) -> Refusal {
    tracing::warn!(plugin = %candidate.id(), version = %candidate.version(), why = %why, "{}", why.reason());
    ApiError::new(ErrorCode::PluginRefused, why.to_string()).into()
}
