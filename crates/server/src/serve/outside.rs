//! What leads out of the gateway: the guarded door, secrets, the mail server.

use std::sync::Arc;

use secrecy::SecretString;
use toolyard_egress::{Door, Header, MailServer, MailTls, Mailer, Opened, Target};
use toolyard_mcp::{Doors, Host, Logins, Owner, Sharing};
use toolyard_plugins::bundle::Policy;
use toolyard_protocol::TenantId;
use toolyard_protocol::manifest::FetchHost;
use toolyard_runtime::{
    Collector, DatabaseTokens, Delivery, FetchRule, McpTools, PluginRules, Retry, Sealer, Secrets,
};
use toolyard_schema::Schemas;
use toolyard_store::Store;

use super::ServeError;
use crate::config::{Config, Mode, Smtp, SmtpTls, mcp_servers};

/// The door for every address that is not the operator's.
pub(super) fn guarded(config: &Config) -> Result<Door, ServeError> {
    let opened = Opened::parse(&config.allow_private_network).map_err(ServeError::Door)?;
    Door::guarded(opened).map_err(|e| ServeError::Door(e.causes()))
}

/// By which ways the outbox is emptied.
pub(super) fn delivery(config: &Config, door: Door, sealer: Arc<Sealer>) -> Result<Delivery, ServeError> {
    let mailer = config.smtp.host.as_ref().map(|host| mailer(host, &config.smtp)).transpose()?;
    let files =
        format!("{}/api/files/", config.public_url.as_deref().unwrap_or_default().trim_end_matches('/'));
    Ok(Delivery { door, sealer, mailer, files, retry: Retry::default() })
}

fn mailer(host: &str, smtp: &Smtp) -> Result<Mailer, ServeError> {
    let password = SecretString::from(smtp.password.expose());
    let server = MailServer {
        host: host.to_owned(),
        port: smtp.port,
        tls: match smtp.tls {
            SmtpTls::Tls => MailTls::Tls,
            SmtpTls::Starttls => MailTls::StartTls,
            SmtpTls::None => MailTls::None,
        },
        user: smtp.user.clone().map(|user| (user, password)),
        from: smtp.from.clone().unwrap_or_default(),
    };
    Mailer::new(&server).map_err(|e| ServeError::Mail(e.to_string()))
}

/// Who takes spans.
pub(super) fn collector(config: &Config, door: &Door) -> Result<Option<Collector>, ServeError> {
    let Some(address) = &config.telemetry.otlp_traces else { return Ok(None) };
    let bad =
        |e: toolyard_egress::EgressError| ServeError::Door(format!("telemetry.otlp_traces: {}", e.causes()));
    let authorization = &config.telemetry.authorization;
    let headers = match authorization.is_empty() {
        true => Vec::new(),
        false => vec![Header::secret("authorization", SecretString::from(authorization.expose()))],
    };
    Ok(Some(Collector { door: door.clone(), target: Target::parse(address).map_err(bad)?, headers }))
}

/// How users log in at MCP servers. What they get is kept closed in the database.
pub(super) fn logins(public_url: &str, sealer: Arc<Sealer>, store: &Arc<Store>) -> Logins {
    Logins {
        store: Arc::new(DatabaseTokens::new(store.clone(), sealer)),
        redirect_uri: super::mcp_callback(public_url),
        client_metadata_url: None,
    }
}

/// The MCP servers. The operator's shared ones start now, without being waited for.
pub(super) fn mcp(
    config: &Config,
    operator: &Door,
    guarded: &Door,
    secrets: &Secrets,
    store: &Arc<Store>,
    logins: Logins,
) -> Result<McpTools, ServeError> {
    let servers = mcp_servers(config, &|name| std::env::var(name).ok()).map_err(ServeError::Config)?;
    let doors = Doors { operator: operator.clone(), guarded: guarded.clone() };
    let host = Host::new(doors, Schemas::new(), Some(logins));
    let nobody = Owner { tenant: TenantId::default_tenant(), entity: None };
    let shared: Vec<_> = servers.iter().filter(|s| s.sharing == Sharing::Shared).cloned().collect();
    host.start(&nobody, &shared);
    Ok(McpTools { host, operator: servers.into(), secrets: secrets.clone(), store: store.clone() })
}

/// How strict this gateway is with plugins.
pub(crate) fn plugin_rules(config: &Config) -> PluginRules {
    let any = config.plugins.fetch.iter().any(|host| host == "*");
    // The configuration was checked: what is no host is none here.
    let hosts = config.plugins.fetch.iter().filter_map(|host| FetchHost::parse(host).ok());
    PluginRules {
        policy: match config.mode {
            Mode::Development => Policy::Development,
            Mode::Production => Policy::Production,
        },
        threshold: config.plugins.threshold,
        fetch: if any { FetchRule::Any } else { FetchRule::Hosts(hosts.collect()) },
    }
}
