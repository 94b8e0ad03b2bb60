//! What every request may use.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use toolyard_egress::Door;
use toolyard_runtime::{McpTools, PluginRules, Runtime, Secrets, Tasks};
use toolyard_store::Store;

use crate::auth::{Auth, Cursors, StartCode, UrlSigner};
use crate::config::Config;
use crate::http::rate::Rates;
use crate::http::site::Sites;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Arc<Store>,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) auth: Auth,
    pub(crate) signer: UrlSigner,
    /// Closes positions of lists that may lie at another's row.
    pub(crate) cursors: Cursors,
    /// Opens the web app, once.
    pub(crate) start_code: StartCode,
    /// What `${secret.NAME}` and `${env.NAME}` stand for.
    pub(crate) secrets: Secrets,
    /// The door for addresses that are not the operator's.
    pub(crate) guarded: Door,
    /// The MCP servers of the operator and of agents.
    pub(crate) mcp: McpTools,
    /// The clients that talk to agents over MCP.
    pub(crate) mcp_clients: toolyard_mcp::server::Server,
    /// Who of them hears when the tools of an agent change.
    pub(crate) mcp_news: crate::routes::ToolNews,
    /// The address that people's browsers know the gateway by.
    pub(crate) public_url: String,
    /// What the operator says about plugins.
    pub(crate) plugins: PluginRules,
    pub(crate) rates: Rates,
    pub(crate) sites: Sites,
    pub(crate) config: Config,
    pub(crate) meter: Meter,
    pub(crate) tasks: Tasks,
    /// Cancelled when the gateway stops: every stream ends, `/ready` says no.
    pub(crate) shutdown: CancellationToken,
}

impl App {
    /// Where logins at MCP servers come back to.
    pub(crate) fn mcp_callback(&self) -> String {
        crate::serve::mcp_callback(&self.public_url)
    }
}

/// Renders `/metrics`.
pub(crate) struct Meter(pub(crate) PrometheusHandle);

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}
