//! `toolyard tenant`: a tenant goes with all of it.

use clap::Subcommand;
use serde_json::json;
use toolyard_protocol::TenantId;
use toolyard_store::removal;

use super::reach::{Reach, reach};
use super::{CliError, Common, print};
use crate::config::Config;

#[derive(Debug, Subcommand)]
pub(super) enum Tenant {
    /// Remove a tenant: its keys, agents, conversations, runs, files, everything.
    Delete {
        /// The tenant's name.
        name: String,
        /// Yes, all of it. There is no way back.
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn obey(command: Tenant, common: &Common, config: &Config) -> Result<(), CliError> {
    let Tenant::Delete { name, yes } = command;
    let tenant = TenantId::parse(&name).map_err(|e| CliError::said(e.to_string()))?;
    if tenant == TenantId::default_tenant() {
        return Err(CliError::said("the tenant default is the operator's own and stays"));
    }
    if !yes {
        return Err(CliError::said(format!(
            "this removes everything of tenant {name}, for good: say --yes if you mean it"
        )));
    }
    match reach(common, config).await? {
        Reach::Gateway(gateway) => {
            gateway.delete(&format!("/api/tenants/{tenant}"), &[]).await?;
        }
        Reach::Database(store) => {
            let removed = removal::tenant(&store, &tenant, "cli").await;
            store.close().await;
            if removed? == 0 {
                return Err(CliError::said("Tenant not found"));
            }
        }
    }
    print::value(common.json, &json!({"deleted": tenant}), |_| format!("tenant {name} is removed"));
    Ok(())
}
