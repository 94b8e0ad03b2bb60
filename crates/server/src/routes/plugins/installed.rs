//! Install, list, take away, revoke.

use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{KeyKind, PluginId};
use toolyard_store::plugins::{self, State};
use toolyard_store::{StoreError, Tx};

use super::super::call::Call;
use super::super::{answer, page};
use super::{desk, view};
use crate::http::{Refusal, body};
use crate::registry::{self, Desk, Ready, Revoke};

/// Which version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstallPublished {
    /// Missing means the newest that is published.
    #[serde(default)]
    version: Option<PluginVersion>,
}

pub(super) async fn install_document(call: Call) -> Result<Response, Refusal> {
    body::check_type(&call.headers)?;
    let candidate = registry::read(call.body.clone()).await?;
    install(&call, Ready::new(candidate, None).await?).await
}

pub(super) async fn install_published(call: Call) -> Result<Response, Refusal> {
    let (id, desk) = (call.id("plugin", "Plugin", PluginId::parse)?, desk(&call));
    let rows = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { plugins::versions(tx, &desk.tenant, &id).await })
        })
        .await?;
    let mut published = rows.into_iter().filter(|row| row.state == State::Published).peekable();
    if published.peek().is_none() {
        return Err(Refusal::not_found("Plugin"));
    }
    let InstallPublished { version } = call.json()?;
    let row = published.find(|row| version.as_ref().is_none_or(|version| row.version == *version));
    let row = row.ok_or_else(|| Refusal::not_found("Plugin"))?;
    let candidate = registry::read(row.document).await?;
    install(&call, Ready::new(candidate, None).await?).await
}

async fn install(call: &Call, ready: Ready) -> Result<Response, Refusal> {
    let desk = desk(call);
    let done = call
        .store()
        .write::<_, Refusal, _>(move |tx| Box::pin(async move { registry::install(tx, &desk, &ready).await }))
        .await?;
    answer::json(200, &view::InstalledPlugin { plugin: view::installed(done.row, Ok(done.trust)) })
}

async fn one(
    tx: &mut Tx<'_>,
    desk: &Desk,
    id: &PluginId,
    backend: bool,
) -> Result<Option<view::PluginView>, StoreError> {
    let installed = match plugins::get(tx, &desk.tenant, id).await? {
        Some(row) => {
            let trust = registry::usable(tx, desk, &row).await?;
            Some(view::installed(row, trust))
        }
        None => None,
    };
    let versions = if backend { plugins::versions(tx, &desk.tenant, id).await? } else { Vec::new() };
    if installed.is_none() && versions.is_empty() {
        return Ok(None);
    }
    let versions = versions.into_iter().map(view::short).collect();
    Ok(Some(view::PluginView { id: id.clone(), installed, versions }))
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let (id, desk) = (call.id("plugin", "Plugin", PluginId::parse)?, desk(&call));
    let backend = call.principal.kind == KeyKind::Secret;
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { one(tx, &desk, &id, backend).await }))
        .await?;
    let plugin = found.ok_or_else(|| Refusal::not_found("Plugin"))?;
    answer::json(200, &view::OnePlugin { plugin })
}

/// Users see what is installed, and whether somebody vouches for it (row H60).
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let (desk, limit) = (desk(&call), page::limit(&call.query)?);
    let after = page::typed(&call.query, "after", PluginId::parse)?;
    let backend = call.principal.kind == KeyKind::Secret;
    let (ids, plugins) = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let after = after.as_ref().map(PluginId::as_str);
                let ids = plugins::known(tx, &desk.tenant, after, limit).await?;
                let mut views = Vec::with_capacity(ids.len());
                for id in &ids {
                    views.extend(one(tx, &desk, id, backend).await?);
                }
                Ok((ids, views))
            })
        })
        .await?;
    let next = page::next(&ids, limit, ToString::to_string);
    answer::json(200, &view::PluginList { plugins, next })
}

/// What of a plugin may be changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchPlugin {
    /// False: it stays installed, and runs nothing.
    enabled: bool,
}

pub(super) async fn patch(call: Call) -> Result<Response, Refusal> {
    let PatchPlugin { enabled } = call.json()?;
    let (id, desk) = (call.id("plugin", "Plugin", PluginId::parse)?, desk(&call));
    let done = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(row) = registry::switch(tx, &desk, &id, !enabled).await? else { return Ok(None) };
                let trust = registry::usable(tx, &desk, &row).await?;
                Ok(Some(view::installed(row, trust)))
            })
        })
        .await?;
    let plugin = done.ok_or_else(|| Refusal::not_found("Plugin"))?;
    answer::json(200, &view::InstalledPlugin { plugin })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let (id, desk) = (call.id("plugin", "Plugin", PluginId::parse)?, desk(&call));
    let existed = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move { registry::uninstall(tx, &desk, &id).await })
        })
        .await?;
    answer::gone(existed, "Plugin")
}

pub(super) async fn revoke(call: Call) -> Result<Response, Refusal> {
    let (asked, desk): (Revoke, Desk) = (call.json()?, desk(&call));
    let row = call
        .store()
        .write::<_, Refusal, _>(move |tx| Box::pin(async move { registry::revoke(tx, &desk, asked).await }))
        .await?;
    answer::json(200, &view::revocation(row))
}

pub(super) async fn revocations(call: Call) -> Result<Response, Refusal> {
    let tenant = call.tenant().clone();
    let rows = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { plugins::revocations(tx, &tenant).await }))
        .await?;
    let revocations = rows.into_iter().map(view::revocation).collect();
    answer::json(200, &view::RevocationList { revocations })
}
