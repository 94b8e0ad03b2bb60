//! `toolyard agent`

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};
use toolyard_protocol::{AgentName, TenantId, limits};
use toolyard_runtime::check_agent;
use toolyard_store::agents::{self, Upserted};
use toolyard_store::{Store, StoreError, audit};

use super::reach::{Gateway, Reach, reach, reach_or_make};
use super::{CliError, Common, print};
use crate::config::Config;

#[derive(Debug, Subcommand)]
pub(super) enum Agent {
    /// List agents.
    List,
    /// Show an agent's configuration.
    Show {
        /// The agent's name.
        name: String,
    },
    /// Store an agent from a file.
    Put {
        /// Its configuration, a JSON file.
        file: PathBuf,
    },
    /// Remove an agent.
    Delete {
        /// The agent's name.
        name: String,
    },
}

const COLUMNS: &[&str] = &["name", "id", "updatedAt"];

pub(super) async fn obey(command: Agent, common: &Common, config: &Config) -> Result<(), CliError> {
    if let Agent::Put { file } = &command {
        return put(file, common, config).await;
    }
    let store = match reach(common, config).await? {
        Reach::Gateway(gateway) => return at_gateway(&command, &gateway, common.json).await,
        Reach::Database(store) => store,
    };
    let done = in_database(&command, &store, common.json).await;
    store.close().await;
    done
}

fn named(name: &str) -> Result<AgentName, CliError> {
    AgentName::parse(name).map_err(|e| CliError::said(e.to_string()))
}

async fn at_gateway(command: &Agent, gateway: &Gateway, as_json: bool) -> Result<(), CliError> {
    match command {
        Agent::Put { .. } => {}
        Agent::List => {
            let list = gateway.get("/api/agents", &[("limit", "200")]).await?;
            print::rows(as_json, &list, "agents", COLUMNS);
        }
        Agent::Show { name } => {
            let found = gateway.get(&format!("/api/agents/{}", named(name)?), &[]).await?;
            print::line(format_args!("{:#}", found.pointer("/agent/config").unwrap_or(&Value::Null)));
        }
        Agent::Delete { name } => {
            gateway.delete(&format!("/api/agents/{}", named(name)?), &[]).await?;
            print::value(as_json, &json!({"deleted": true}), |_| "deleted".to_owned());
        }
    }
    Ok(())
}

async fn put(file: &PathBuf, common: &Common, config: &Config) -> Result<(), CliError> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| CliError::said(format!("{name}: {e}")))?;
    let agent: Value = serde_json::from_str(&text).map_err(|e| CliError::said(format!("{name}: {e}")))?;
    // Checked here too, so that a bad file is named before anybody is asked.
    check_agent(&agent).map_err(|e| CliError::said(format!("{name}: {}", e.message)))?;
    let answer = match reach_or_make(common, config).await? {
        Reach::Gateway(gateway) => gateway.post("/api/agents", &json!({"config": agent})).await?,
        Reach::Database(store) => {
            let done = store_agent(&store, agent).await;
            store.close().await;
            done?
        }
    };
    print::value(common.json, &answer, |answer| {
        let id = answer.get("agentId").and_then(Value::as_str).unwrap_or_default();
        let created = answer.get("created").and_then(Value::as_bool).unwrap_or_default();
        format!("{} {id}", if created { "created" } else { "stored" })
    });
    Ok(())
}

async fn store_agent(store: &Store, config: Value) -> Result<Value, CliError> {
    let name = check_agent(&config).map_err(|e| CliError::said(e.message))?.config.agent.name;
    let tenant = TenantId::default_tenant();
    let (agent, done) = store
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let (agent, done) = agents::upsert(tx, &tenant, &name, &config).await?;
                if done != Upserted::Same {
                    audit::write(tx, &tenant, "cli", "agent.put", agent.name.as_str(), None).await?;
                }
                Ok((agent, done))
            })
        })
        .await?;
    let created = done == Upserted::Created;
    Ok(json!({"agentId": agent.id, "configHash": agent.hash, "created": created}))
}

async fn in_database(command: &Agent, store: &Store, as_json: bool) -> Result<(), CliError> {
    let tenant = TenantId::default_tenant();
    match command {
        Agent::Put { .. } => {}
        Agent::List => {
            let rows = store
                .read::<_, StoreError, _>(move |tx| {
                    Box::pin(async move { agents::list(tx, &tenant, None, limits::PAGE_MAX).await })
                })
                .await?;
            let view = |a: agents::Agent| json!({"id": a.id, "name": a.name, "configHash": a.hash, "updatedAt": a.updated_at});
            let list = json!({"agents": rows.into_iter().map(view).collect::<Vec<_>>()});
            print::rows(as_json, &list, "agents", COLUMNS);
        }
        Agent::Show { name } => {
            let name = named(name)?;
            let found = store
                .read::<_, StoreError, _>(move |tx| {
                    Box::pin(async move {
                        let Some(agent) = agents::by_name(tx, &tenant, &name).await? else { return Ok(None) };
                        agents::version(tx, &tenant, &agent.hash).await
                    })
                })
                .await?;
            let config = found.ok_or_else(|| CliError::said("Agent not found"))?;
            print::line(format_args!("{config:#}"));
        }
        Agent::Delete { name } => {
            let name = named(name)?;
            let existed = store
                .write::<_, StoreError, _>(move |tx| {
                    Box::pin(async move {
                        let Some(agent) = agents::by_name(tx, &tenant, &name).await? else {
                            return Ok(false);
                        };
                        audit::write(tx, &tenant, "cli", "agent.delete", name.as_str(), None).await?;
                        agents::delete(tx, &tenant, &agent.id).await
                    })
                })
                .await?;
            if !existed {
                return Err(CliError::said("Agent not found"));
            }
            print::value(as_json, &json!({"deleted": true}), |_| "deleted".to_owned());
        }
    }
    Ok(())
}
