//! Installing a plugin, and taking it away again.

use serde_json::json;
use toolyard_plugins::bundle::{Bundle, Moment, Seen, Trust};
use toolyard_protocol::{ApiError, ErrorCode, PluginId, limits};
use toolyard_runtime::{admit_installed, keyring};
use toolyard_store::plugins::{self, Installed};
use toolyard_store::{StoreError, Tx, audit as journal};

use super::{Desk, Ready, refused};
use crate::http::Refusal;
use crate::routes::answer::too_many;

/// What became of it.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) row: Installed,
    pub(crate) trust: Trust,
}

/// Installs a document, if it may run here.
pub(crate) async fn install(tx: &mut Tx<'_>, desk: &Desk, ready: &Ready) -> Result<Installation, Refusal> {
    let candidate = &ready.candidate;
    let (id, tenant) = (candidate.id(), &desk.tenant);
    let now = tx.now().await?;
    let keys = keyring(tx, tenant, desk.rules.threshold).await?;
    let no = |why| refused(candidate, &why);
    let bundle = keys.admit(candidate.clone(), desk.rules.policy, Moment::at(now)).map_err(no)?;
    bundle.fits(env!("CARGO_PKG_VERSION")).map_err(no)?;
    let installed = plugins::list(tx, tenant).await?;
    let own = installed.iter().find(|row| row.id == *id);
    let seen = Seen {
        newest: plugins::pinned(tx, tenant, id).await?,
        installed: own.map(|row| (row.version.clone(), row.hash.clone(), row.signed)),
    };
    bundle.follows(&seen).map_err(no)?;
    desk.rules.check_fetch(&bundle).map_err(|why| {
        tracing::warn!(plugin = %id, %why, "a plugin is refused");
        Refusal::from(ApiError::new(ErrorCode::PluginRefused, why))
    })?;
    check_names(&bundle, &installed)?;
    let most = limits::PLUGINS;
    if own.is_none() && installed.len() >= most {
        return Err(too_many("installed plugins", most));
    }
    let row = row(&bundle, ready, now);
    plugins::install(tx, tenant, &row).await?;
    if bundle.is_signed() {
        plugins::pin(tx, tenant, id, (&row.version, &row.hash)).await?;
    } else {
        tracing::warn!(plugin = %id, "an unsigned plugin is installed: development mode allows it");
    }
    journal::write(tx, tenant, &desk.actor, "plugin.install", id.as_str(), Some(&row.version.to_string()))
        .await?;
    Ok(Installation { row, trust: bundle.trust().clone() })
}

fn row(bundle: &Bundle, ready: &Ready, now: toolyard_protocol::Timestamp) -> Installed {
    let broken: Vec<&str> = ready.report.broken().collect();
    for piece in &broken {
        // Only this one is left out (row H51).
        tracing::warn!(plugin = %bundle.id(), tool = piece, "the code of a tool is not JavaScript");
    }
    let tools: Vec<_> = bundle.document().tools.iter().map(|tool| &tool.name).collect();
    Installed {
        id: bundle.id().clone(),
        version: bundle.version().clone(),
        hash: bundle.hash().clone(),
        document: ready.candidate.text(),
        signed: bundle.is_signed(),
        tools: json!(tools),
        broken: json!(broken),
        installed_at: now,
        switched_off: false,
    }
}

/// A tool's name belongs to one plugin. The plugin's own older version is no obstacle.
fn check_names(bundle: &Bundle, installed: &[Installed]) -> Result<(), Refusal> {
    for other in installed.iter().filter(|row| row.id != *bundle.id()) {
        let taken = |name: &str| other.tools.as_array().is_some_and(|tools| tools.contains(&json!(name)));
        if let Some(tool) = bundle.document().tools.iter().find(|tool| taken(tool.name.as_str())) {
            let text = format!("Tool name conflict: {} already exists", tool.name);
            return Err(ApiError::new(ErrorCode::ToolNameConflict, text).into());
        }
    }
    Ok(())
}

/// Switches a plugin off or on. It stays installed.
pub(crate) async fn switch(
    tx: &mut Tx<'_>,
    desk: &Desk,
    id: &PluginId,
    off: bool,
) -> Result<Option<Installed>, StoreError> {
    if !plugins::switch(tx, &desk.tenant, id, off).await? {
        return Ok(None);
    }
    let deed = if off { "plugin.switch_off" } else { "plugin.switch_on" };
    journal::write(tx, &desk.tenant, &desk.actor, deed, id.as_str(), None).await?;
    plugins::get(tx, &desk.tenant, id).await
}

/// Takes a plugin away. Which versions were seen stays known.
pub(crate) async fn uninstall(tx: &mut Tx<'_>, desk: &Desk, id: &PluginId) -> Result<bool, StoreError> {
    let existed = plugins::uninstall(tx, &desk.tenant, id).await?;
    if existed {
        journal::write(tx, &desk.tenant, &desk.actor, "plugin.uninstall", id.as_str(), None).await?;
    }
    Ok(existed)
}

/// Whether an installed plugin could run now, and by whose word. Whether it is
/// switched on is another question.
pub(crate) async fn usable(
    tx: &mut Tx<'_>,
    desk: &Desk,
    row: &Installed,
) -> Result<Result<Trust, String>, StoreError> {
    let row = Installed { switched_off: false, ..row.clone() };
    let bundle = admit_installed(tx, &desk.tenant, &row, &desk.rules).await?;
    Ok(bundle.map(|bundle| bundle.trust().clone()))
}
