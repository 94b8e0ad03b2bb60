//! `toolyard mcp --agent X`: an agent of a running gateway as an MCP server
//! that a desktop program starts and talks to over standard input and output.

use std::os::fd::AsFd;

use clap::Args;
use secrecy::SecretString;
use toolyard_egress::{Door, Header, Target};
use toolyard_mcp::server::Relay;
use toolyard_protocol::AgentName;

use super::reach::running;
use super::{CliError, Common};
use crate::auth::stored_secret;
use crate::config::{AuthMode, Config};

#[derive(Debug, Args)]
pub(super) struct Mcp {
    /// The agent, by name. Without it the default agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// A public key instead of the secret one, with --token.
    #[arg(long, env = "TOOLYARD_MCP_PUBLIC_KEY", value_name = "KEY", requires = "token")]
    public_key: Option<String>,
    /// The user's token, with --public-key.
    #[arg(
        long,
        env = "TOOLYARD_MCP_TOKEN",
        value_name = "JWT",
        hide_env_values = true,
        requires = "public_key"
    )]
    token: Option<String>,
}

pub(super) async fn obey(command: Mcp, common: &Common, config: &Config) -> Result<(), CliError> {
    let agent = command.agent.unwrap_or_else(|| config.default_agent.clone());
    let agent = AgentName::parse(&agent).map_err(|e| CliError::said(format!("--agent {agent}: {e}")))?;
    let url = common.url.clone().or_else(|| running(config)).ok_or_else(|| {
        CliError::said("no gateway runs here: start one with `toolyard serve`, or name one with --url")
    })?;
    let base = Target::parse(&url).map_err(|e| CliError::said(format!("{url}: {e}")))?;
    let headers = match (command.public_key, command.token) {
        (Some(key), Some(token)) => vec![
            Header::secret("x-public-key", SecretString::from(key)),
            Header::bearer(&SecretString::from(token)),
        ],
        _ => match stored_secret(config) {
            Some(key) => vec![Header::bearer(&key)],
            None if config.auth == AuthMode::Off => Vec::new(),
            None => {
                let text = format!("a gateway runs at {url}: set TOOLYARD_SECRET_KEY to talk to it");
                return Err(CliError::said(text));
            }
        },
    };
    let door = Door::operator().map_err(|e| CliError::said(e.causes()))?;
    let target = base.below(&format!("/mcp/{agent}"));
    let unusable = |e: std::io::Error| CliError::said(format!("standard input and output: {e}"));
    let from = own(&std::io::stdin()).map_err(unusable)?;
    let to = own(&std::io::stdout()).map_err(unusable)?;
    Relay::new(door, target, headers).run(from, to).await;
    Ok(())
}

/// A stream of this process as a file that is read and written in the background.
fn own(stream: &impl AsFd) -> std::io::Result<tokio::fs::File> {
    let owned = stream.as_fd().try_clone_to_owned()?;
    Ok(tokio::fs::File::from_std(std::fs::File::from(owned)))
}
