//! What a gateway or its database keeps.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_plugins::bundle::{PublicKey, PublicKeyFile, Trust};
use toolyard_protocol::{CuratorId, PluginId, TenantId};
use toolyard_store::curators::KeyRow;
use toolyard_store::{Store, StoreError, curators, plugins};

use super::files::{at, read, read_text};
use super::{Plugin, Revoke};
use crate::cli::reach::Gateway;
use crate::cli::{CliError, print};
use crate::config::Config;
use crate::http::Refusal;
use crate::registry::{self, Desk, Ready, TrustCurator};
use crate::serve::outside::plugin_rules;

const COLUMNS: &[&str] = &["id", "version", "verified", "usable", "curators", "why"];

pub(super) async fn at_gateway(command: Plugin, gateway: &Gateway, as_json: bool) -> Result<(), CliError> {
    match command {
        Plugin::Keygen { .. } | Plugin::Sign { .. } | Plugin::Verify { .. } => {}
        Plugin::Install { plugin } => {
            // Word for word: a reader in between would repair what must be refused.
            let done = gateway.post_text("/api/plugins/install", read_text(&plugin)?).await?;
            show_installed(as_json, &done["plugin"]);
        }
        Plugin::List => {
            let list = gateway.get("/api/plugins", &[("limit", "200")]).await?;
            let rows = list["plugins"].as_array().cloned().unwrap_or_default();
            let rows: Vec<Value> =
                rows.into_iter().map(|row| row["installed"].clone()).filter(|row| !row.is_null()).collect();
            print::rows(as_json, &json!({ "plugins": rows }), "plugins", COLUMNS);
        }
        Plugin::Uninstall { id } => {
            gateway.delete(&format!("/api/plugins/{}", plugin_id(&id)?), &[]).await?;
            print::value(as_json, &json!({"uninstalled": true}), |_| "uninstalled".to_owned());
        }
        Plugin::Trust { key, plugins } => {
            let (curator, public) = public_key(&key)?;
            let path = format!("/api/curators/{curator}");
            let known = gateway.put(&path, &json!({ "plugins": plugins })).await?;
            let keys = known["curator"]["keys"].as_array().map_or(&[][..], Vec::as_slice);
            // Who was trusted before may be trusted with other plugins.
            if !keys.iter().any(|key| key["id"] == json!(public.id())) {
                let key = json!({"algorithm": public.algorithm(), "publicKey": public.to_base64()});
                gateway.post(&format!("{path}/keys"), &key).await?;
            }
            show_trusted(as_json, &curator, &public, &plugins);
        }
        Plugin::Revoke(asked) => {
            let done = gateway.post("/api/plugins/revoke", &body(&asked)).await?;
            show_revoked(as_json, &done);
        }
    }
    Ok(())
}

fn plugin_id(text: &str) -> Result<PluginId, CliError> {
    PluginId::parse(text).map_err(|e| CliError::said(e.to_string()))
}

fn body(asked: &Revoke) -> Value {
    let Revoke { plugin, version, key, curator, reason, ahead } = asked;
    let mut body = json!({ "reason": reason });
    if *ahead {
        body["ahead"] = json!(true);
    }
    for (name, value) in [("plugin", plugin), ("version", version), ("key", key), ("curator", curator)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    body
}

fn public_key(file: &Path) -> Result<(CuratorId, PublicKey), CliError> {
    PublicKeyFile::read(&read_text(file)?).map_err(|why| at(file, why))
}

fn show_installed(as_json: bool, plugin: &Value) {
    print::value(as_json, plugin, |plugin| {
        let text = |field: &str| plugin[field].as_str().unwrap_or_default().to_owned();
        let by = match plugin["verified"].as_bool() {
            Some(true) => format!("verified, signed by {}", print::cell(plugin.get("curators"))),
            _ => format!("NOT VERIFIED: {}", text("warning")),
        };
        format!("{} {} is installed ({by})", text("id"), text("version"))
    });
}

fn show_trusted(as_json: bool, curator: &CuratorId, public: &PublicKey, plugins: &[String]) {
    let done = json!({ "curatorId": curator, "keyId": public.id(), "plugins": plugins });
    print::value(as_json, &done, |_| format!("{curator} is trusted for {}", plugins.join(", ")));
}

fn show_revoked(as_json: bool, done: &Value) {
    print::value(as_json, done, |done| {
        let text = |field: &str| done[field].as_str().unwrap_or_default();
        match done["version"].as_str() {
            Some(version) => format!("revoked: plugin {} {version}", text("target")),
            None => format!("revoked: {} {}", text("kind"), text("target")),
        }
    });
}

fn said(why: &Refusal) -> CliError {
    CliError::said(why.error.message.clone())
}

pub(super) async fn in_database(
    command: Plugin,
    store: &Store,
    config: &Config,
    as_json: bool,
) -> Result<(), CliError> {
    let (tenant, rules) = (TenantId::default_tenant(), plugin_rules(config));
    let desk = Desk { tenant, actor: "cli".to_owned(), rules };
    match command {
        Plugin::Keygen { .. } | Plugin::Sign { .. } | Plugin::Verify { .. } => {}
        Plugin::Install { plugin } => {
            let candidate = registry::read(read(&plugin)?).await.map_err(|why| said(&why))?;
            let ready = Ready::new(candidate, None).await.map_err(|why| said(&why))?;
            let done = store
                .write::<_, Refusal, _>(move |tx| {
                    Box::pin(async move { registry::install(tx, &desk, &ready).await })
                })
                .await
                .map_err(|why| said(&why))?;
            show_installed(as_json, &row(&done.row, &Ok(done.trust)));
        }
        Plugin::List => {
            let rows = store
                .read::<_, StoreError, _>(move |tx| {
                    Box::pin(async move {
                        let mut rows = Vec::new();
                        for one in plugins::list(tx, &desk.tenant).await? {
                            let trust = registry::usable(tx, &desk, &one).await?;
                            rows.push(row(&one, &trust));
                        }
                        Ok(rows)
                    })
                })
                .await?;
            print::rows(as_json, &json!({ "plugins": rows }), "plugins", COLUMNS);
        }
        Plugin::Uninstall { id } => {
            let id = plugin_id(&id)?;
            let existed = store
                .write::<_, StoreError, _>(move |tx| {
                    Box::pin(async move { registry::uninstall(tx, &desk, &id).await })
                })
                .await?;
            if !existed {
                return Err(CliError::said("Plugin not found"));
            }
            print::value(as_json, &json!({"uninstalled": true}), |_| "uninstalled".to_owned());
        }
        Plugin::Trust { key, plugins } => trust(&key, plugins, desk, store, as_json).await?,
        Plugin::Revoke(asked) => {
            let asked = serde_json::from_value(body(&asked)).map_err(|e| CliError::said(e.to_string()))?;
            let done = store
                .write::<_, Refusal, _>(move |tx| {
                    Box::pin(async move { registry::revoke(tx, &desk, asked).await })
                })
                .await
                .map_err(|why| said(&why))?;
            let done = json!({"kind": done.kind, "target": done.target, "version": done.version, "reason": done.reason});
            show_revoked(as_json, &done);
        }
    }
    Ok(())
}

async fn trust(
    key: &Path,
    plugins: Vec<String>,
    desk: Desk,
    store: &Store,
    as_json: bool,
) -> Result<(), CliError> {
    let (curator, public) = public_key(key)?;
    let (id, key, patterns) = (curator.clone(), public.clone(), plugins.clone());
    store
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let row = KeyRow {
                    id: key.id(),
                    curator: id.clone(),
                    algorithm: key.algorithm().as_str().to_owned(),
                    public_key: key.to_base64(),
                    sealed: None,
                    expires_at: None,
                    created_at: tx.now().await?,
                };
                let first_signer = desk.actor.clone();
                let here = |known: &KeyRow| known.id == row.id && known.curator == row.curator;
                let known = curators::keys(tx, &desk.tenant).await?.iter().any(here);
                let wanted = TrustCurator { id, name: None, plugins: patterns, signers: None, first_signer };
                registry::trust(tx, &desk, wanted).await?;
                // Who was trusted before may be trusted with other plugins.
                if known { Ok(()) } else { registry::add_key(tx, &desk, &row).await }
            })
        })
        .await
        .map_err(|why| said(&why))?;
    show_trusted(as_json, &curator, &public, &plugins);
    Ok(())
}

fn row(row: &plugins::Installed, trust: &Result<Trust, String>) -> Value {
    let (curators, why) = match trust {
        Ok(Trust::Signed { by }) => (by.clone(), None),
        Ok(Trust::Unsigned) => (Vec::new(), None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let warning = matches!(trust, Ok(Trust::Unsigned)).then_some("nobody signed it");
    json!({
        "id": row.id, "version": row.version, "tools": row.tools, "verified": !curators.is_empty(),
        "usable": why.is_none(), "curators": curators, "why": why, "warning": warning,
        "installedAt": row.installed_at,
    })
}
