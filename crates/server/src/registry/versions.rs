//! Versions of a plugin on their way to being published.

use serde_json::json;
use toolyard_plugins::bundle::audit::{Report, audit};
use toolyard_plugins::bundle::{Candidate, Moment, Policy, Refused, SigningKey};
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{ApiError, ErrorCode, PluginId, limits};
use toolyard_runtime::keyring;
use toolyard_store::plugins::{self, State, VersionRow};
use toolyard_store::{StoreError, Tx, audit as journal};

use super::{Desk, aside, malformed, refused};
use crate::http::Refusal;
use crate::routes::answer::too_many;

/// A document and what the audit says of it.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) candidate: Candidate,
    pub(crate) report: Report,
}

impl Ready {
    /// Audits, with a look at what was signed before.
    pub(crate) async fn new(candidate: Candidate, before: Option<VersionRow>) -> Result<Self, Refusal> {
        aside(move || {
            let before = before.and_then(|row| Candidate::read_again(row.document.as_bytes()).ok());
            let report = audit(&candidate, before.as_ref());
            Self { candidate, report }
        })
        .await
    }

    fn row(&self, state: State, note: String, now: toolyard_protocol::Timestamp) -> VersionRow {
        VersionRow {
            plugin: self.candidate.id().clone(),
            version: self.candidate.version().clone(),
            hash: self.candidate.hash(),
            document: self.candidate.text(),
            state,
            report: json!(self.report),
            note,
            created_at: now,
            updated_at: now,
        }
    }
}

/// The newest version that was signed, other than this one.
pub(crate) async fn newest_signed(
    tx: &mut Tx<'_>,
    desk: &Desk,
    plugin: &PluginId,
    other_than: &PluginVersion,
) -> Result<Option<VersionRow>, StoreError> {
    let rows = plugins::versions(tx, &desk.tenant, plugin).await?;
    let counts = |row: &VersionRow| {
        matches!(row.state, State::Signed | State::Published) && row.version != *other_than
    };
    Ok(rows.into_iter().find(counts))
}

/// Takes a version in. One that is signed already must be genuine.
pub(crate) async fn submit(tx: &mut Tx<'_>, desk: &Desk, ready: &Ready) -> Result<VersionRow, Refusal> {
    let candidate = &ready.candidate;
    let (id, version) = (candidate.id(), candidate.version());
    let now = tx.now().await?;
    let state = if candidate.is_signed() {
        admit(tx, desk, candidate).await?;
        State::Signed
    } else {
        State::Submitted
    };
    let mut row = ready.row(state, String::new(), now);
    match plugins::get_version(tx, &desk.tenant, id, version).await? {
        // Nothing new.
        Some(known) if known.document == row.document => return Ok(known),
        // Signatures may be added to the same content.
        Some(known) if is_final(known.state) && !(state == State::Signed && known.hash == row.hash) => {
            let why = Refused::OtherContent { plugin: id.clone(), version: version.clone() };
            return Err(refused(candidate, &why));
        }
        Some(known) => {
            row.created_at = known.created_at;
            if known.state == State::Published {
                row.state = State::Published;
            }
        }
        None => {
            let most = limits::PLUGIN_VERSIONS;
            if plugins::versions(tx, &desk.tenant, id).await?.len() >= most {
                return Err(too_many("versions of a plugin", most));
            }
        }
    }
    plugins::put_version(tx, &desk.tenant, &row).await?;
    note(tx, desk, "plugin.submit", &row).await?;
    Ok(row)
}

const fn is_final(state: State) -> bool {
    matches!(state, State::Signed | State::Published)
}

/// What a person says of a version.
pub(crate) async fn review(
    tx: &mut Tx<'_>,
    desk: &Desk,
    mut row: VersionRow,
    approve: bool,
    said: String,
) -> Result<VersionRow, Refusal> {
    if is_final(row.state) {
        return Err(conflict(&row, "is signed already: revoke it instead"));
    }
    row.state = if approve { State::Approved } else { State::Rejected };
    (row.note, row.updated_at) = (said, tx.now().await?);
    plugins::put_version(tx, &desk.tenant, &row).await?;
    note(tx, desk, if approve { "plugin.approve" } else { "plugin.reject" }, &row).await?;
    Ok(row)
}

/// A signature that is about to be put under a version.
pub(crate) struct Signing {
    /// The document as the signer read it.
    pub(crate) read: VersionRow,
    pub(crate) ready: Ready,
    pub(crate) signed: Candidate,
}

impl Signing {
    /// Signs what passes the audit.
    pub(crate) async fn new(read: VersionRow, ready: Ready, key: SigningKey) -> Result<Self, Refusal> {
        if let Some(finding) = ready.report.forbidden().next() {
            let text = format!(
                "The audit forbids it: {} in {}, line {} ({})",
                finding.text, finding.piece, finding.line, finding.rule
            );
            return Err(ApiError::new(ErrorCode::PluginRefused, text).into());
        }
        let candidate = ready.candidate.clone();
        let signed = aside(move || key.sign(&candidate)).await?.map_err(malformed)?;
        Ok(Self { read, ready, signed })
    }
}

/// Keeps a signature. The version counts as signed once enough curators did.
pub(crate) async fn put_signature(
    tx: &mut Tx<'_>,
    desk: &Desk,
    signing: &Signing,
) -> Result<VersionRow, Refusal> {
    let (id, version) = (signing.signed.id(), signing.signed.version());
    let now = plugins::get_version(tx, &desk.tenant, id, version).await?;
    let Some(known) = now.filter(|now| now.document == signing.read.document) else {
        return Err(conflict(&signing.read, "was changed meanwhile: read it again"));
    };
    if matches!(known.state, State::Submitted | State::Rejected) {
        return Err(conflict(&known, "is not approved: review it first"));
    }
    let now = tx.now().await?;
    let keys = keyring(tx, &desk.tenant, desk.rules.threshold).await?;
    let admitted = keys.admit(signing.signed.clone(), Policy::Production, Moment::at(now));
    let state = match admitted {
        Ok(_) if known.state == State::Published => State::Published,
        Ok(_) => State::Signed,
        // The first signatures of several.
        Err(Refused::TooFew { .. }) => known.state,
        Err(why) => return Err(refused(&signing.signed, &why)),
    };
    let ready = Ready { candidate: signing.signed.clone(), report: signing.ready.report.clone() };
    let mut row = ready.row(state, known.note, now);
    row.created_at = known.created_at;
    plugins::put_version(tx, &desk.tenant, &row).await?;
    note(tx, desk, "plugin.sign", &row).await?;
    Ok(row)
}

/// Makes a signed version one that can be installed by its name.
pub(crate) async fn publish(
    tx: &mut Tx<'_>,
    desk: &Desk,
    mut row: VersionRow,
) -> Result<VersionRow, Refusal> {
    if !is_final(row.state) {
        return Err(conflict(&row, "is not signed by enough curators"));
    }
    let candidate = Candidate::read_again(row.document.as_bytes()).map_err(malformed)?;
    let bundle = admit(tx, desk, &candidate).await?;
    let newest = plugins::pinned(tx, &desk.tenant, &row.plugin).await?;
    if newest.is_none_or(|(newest, _)| newest < row.version) {
        plugins::pin(tx, &desk.tenant, &row.plugin, (&row.version, bundle.hash())).await?;
    }
    (row.state, row.updated_at) = (State::Published, tx.now().await?);
    plugins::put_version(tx, &desk.tenant, &row).await?;
    note(tx, desk, "plugin.publish", &row).await?;
    Ok(row)
}

/// As production would, whatever this gateway is.
async fn admit(
    tx: &mut Tx<'_>,
    desk: &Desk,
    candidate: &Candidate,
) -> Result<toolyard_plugins::bundle::Bundle, Refusal> {
    let now = tx.now().await?;
    let keys = keyring(tx, &desk.tenant, desk.rules.threshold).await?;
    let admitted = keys.admit(candidate.clone(), Policy::Production, Moment::at(now));
    admitted.map_err(|why| refused(candidate, &why))
}

async fn note(tx: &mut Tx<'_>, desk: &Desk, action: &str, row: &VersionRow) -> Result<(), StoreError> {
    let version = row.version.to_string();
    journal::write(tx, &desk.tenant, &desk.actor, action, row.plugin.as_str(), Some(&version)).await
}

fn conflict(row: &VersionRow, why: &str) -> Refusal {
    let text = format!("Plugin {} {} {why}", row.plugin, row.version);
    ApiError::new(ErrorCode::Conflict, text).into()
}
