//! `toolyard key`: a tenant is born with its first key.

use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use toolyard_protocol::{Hash, KeyId, KeyKind, TenantId};
use toolyard_store::{Store, StoreError, audit, keys, removal};

use super::reach::{Reach, reach, reach_or_make};
use super::{CliError, Common, print};
use crate::auth::new_key;
use crate::config::Config;
use crate::routes::BEING_REMOVED;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Kind {
    Secret,
    Public,
}

#[derive(Debug, Subcommand)]
pub(super) enum Key {
    /// Make a key and print it, once.
    Create {
        /// The tenant that it is for. A new name makes a tenant.
        #[arg(long, default_value = "default")]
        tenant: String,
        /// A secret one is for backends, a public one for browsers and apps.
        #[arg(long, value_enum)]
        kind: Kind,
        /// What lists show beside it.
        #[arg(long, default_value = "")]
        label: String,
    },
    /// List keys, without the keys themselves.
    List {
        /// Only of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Revoke a key: it is refused within a second.
    Revoke {
        /// The key's id, as `key list` shows it.
        id: String,
        /// The tenant that it is of.
        #[arg(long, default_value = "default")]
        tenant: String,
    },
}

fn tenant_of(text: &str) -> Result<TenantId, CliError> {
    TenantId::parse(text).map_err(|e| CliError::said(format!("--tenant {text}: {e}")))
}

fn id_of(text: &str) -> Result<KeyId, CliError> {
    KeyId::parse(text).map_err(|e| CliError::said(e.to_string()))
}

const COLUMNS: &[&str] = &["id", "tenant", "kind", "label", "revokedAt"];

pub(super) async fn obey(command: Key, common: &Common, config: &Config) -> Result<(), CliError> {
    let reached = match &command {
        Key::Create { tenant, .. } => {
            // A name that is none is told before a database is made for it.
            tenant_of(tenant)?;
            reach_or_make(common, config).await?
        }
        Key::List { .. } | Key::Revoke { .. } => reach(common, config).await?,
    };
    match (command, reached) {
        (Key::Create { tenant, kind, label }, Reach::Gateway(gateway)) => {
            let mut body = json!({"tenant": tenant, "kind": name(kind)});
            if !label.is_empty() {
                body["label"] = Value::String(label);
            }
            show(common.json, &gateway.post("/api/keys", &body).await?);
        }
        (Key::List { tenant }, Reach::Gateway(gateway)) => {
            let query: Vec<_> = tenant.iter().map(|t| ("tenant", t.as_str())).collect();
            print::rows(common.json, &gateway.get("/api/keys", &query).await?, "keys", COLUMNS);
        }
        (Key::Revoke { id, tenant }, Reach::Gateway(gateway)) => {
            let (id, tenant) = (id_of(&id)?, tenant_of(&tenant)?);
            gateway.delete(&format!("/api/keys/{id}"), &[("tenant", tenant.as_str())]).await?;
            print::value(common.json, &json!({"revoked": true}), |_| "revoked".to_owned());
        }
        (command, Reach::Database(store)) => {
            let done = in_database(command, &store, common.json).await;
            store.close().await;
            done?;
        }
    }
    Ok(())
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Secret => "secret",
        Kind::Public => "public",
    }
}

fn show(as_json: bool, made: &Value) {
    let text = |field: &str| made.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    print::value(as_json, made, |_| {
        format!("{}\n(id {}, tenant {}; the key is not shown again)", text("key"), text("id"), text("tenant"))
    });
}

async fn in_database(command: Key, store: &Store, as_json: bool) -> Result<(), CliError> {
    match command {
        Key::Create { tenant, kind, label } => {
            let tenant = tenant_of(&tenant)?;
            let kind = match kind {
                Kind::Secret => KeyKind::Secret,
                Kind::Public => KeyKind::Public,
            };
            let key = new_key(kind).map_err(CliError::said)?;
            let hash = Hash::of(key.as_bytes());
            let made = store
                .write::<_, CliError, _>(move |tx| {
                    Box::pin(async move {
                        if removal::is_going(tx, &tenant).await? {
                            return Err(CliError::said(BEING_REMOVED));
                        }
                        let made = keys::insert(tx, &tenant, kind, &hash, &label).await?;
                        audit::write(tx, &tenant, "cli", "key.create", made.id.as_str(), None).await?;
                        Ok(made)
                    })
                })
                .await?;
            show(as_json, &json!({"key": key, "id": made.id, "tenant": made.tenant, "kind": made.kind}));
        }
        Key::List { tenant } => {
            let tenant = tenant.map(|t| tenant_of(&t)).transpose()?;
            let rows = store
                .read::<_, StoreError, _>(move |tx| {
                    Box::pin(async move { keys::list(tx, tenant.as_ref()).await })
                })
                .await?;
            let view = |k: keys::Key| {
                json!({"id": k.id, "tenant": k.tenant, "kind": k.kind, "label": k.label,
                       "createdAt": k.created_at, "revokedAt": k.revoked_at})
            };
            let list = json!({"keys": rows.into_iter().map(view).collect::<Vec<_>>()});
            print::rows(as_json, &list, "keys", COLUMNS);
        }
        Key::Revoke { id, tenant } => {
            let (id, tenant) = (id_of(&id)?, tenant_of(&tenant)?);
            let revoked = store
                .write::<_, StoreError, _>(move |tx| {
                    Box::pin(async move {
                        let revoked = keys::revoke(tx, &tenant, &id).await?;
                        if revoked {
                            audit::write(tx, &tenant, "cli", "key.revoke", id.as_str(), None).await?;
                        }
                        Ok(revoked)
                    })
                })
                .await?;
            if !revoked {
                return Err(CliError::said("Key not found, or revoked already"));
            }
            print::value(as_json, &json!({"revoked": true}), |_| "revoked".to_owned());
        }
    }
    Ok(())
}
