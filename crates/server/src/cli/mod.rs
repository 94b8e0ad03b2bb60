//! The command line. It talks to a running gateway over HTTP, and opens the
//! database itself only when none runs.

mod a2a;
mod agent;
mod backup;
mod chat;
mod doctor;
pub(crate) mod extract;
mod key;
mod local;
mod mcp;
mod plugin;
mod print;
mod reach;
mod run;
mod settings;
mod tenant;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use toolyard_plugins::sandbox::WORKER;

use crate::config::{self, Config, ConfigError, Flags};
use crate::serve::{self, ServeError};

#[derive(Debug, Parser)]
#[command(name = "toolyard", version, about = "An agent gateway: one binary, durable runs, tools anywhere")]
pub(crate) struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Whether this process is to be one of the sandbox, and nothing else.
    pub(crate) const fn is_js_worker(&self) -> bool {
        matches!(self.command, Command::JsWorker)
    }

    /// The form of the document that this process is to read, and nothing else.
    pub(crate) fn document(&self) -> Option<&str> {
        match &self.command {
            Command::Extract { form } => Some(form),
            _ => None,
        }
    }
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
struct Common {
    /// The configuration file (toolyard.toml if it exists).
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data folder.
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The gateway to talk to, if it is not the one of the data folder.
    #[arg(long, global = true, env = "TOOLYARD_URL", value_name = "URL")]
    url: Option<String>,
    /// Answer with JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the gateway.
    Serve {
        /// Address and port; port 0 takes a free one.
        #[arg(long, value_name = "ADDR")]
        listen: Option<String>,
    },
    /// Agents: list, show, put, delete.
    #[command(subcommand)]
    Agent(agent::Agent),
    /// Agents elsewhere that speak A2A: check.
    #[command(subcommand)]
    A2a(a2a::A2a),
    /// Keys of tenants: create, list, revoke.
    #[command(subcommand)]
    Key(key::Key),
    /// Tenants: delete.
    #[command(subcommand)]
    Tenant(tenant::Tenant),
    /// Plugins: keygen, sign, verify, trust, install, list, uninstall, revoke.
    #[command(subcommand)]
    Plugin(plugin::Plugin),
    /// Talk with an agent of a running gateway.
    Chat(Box<chat::Chat>),
    /// Serve an agent of a running gateway as an MCP server over standard input and output.
    Mcp(mcp::Mcp),
    /// Runs: list, show, cancel, replay.
    #[command(subcommand)]
    Run(run::Run),
    /// Look for trouble: configuration, folder, database, runs.
    Doctor,
    /// The configuration: check, print, schema.
    #[command(subcommand)]
    Config(settings::Settings),
    /// Bring the database that is there to this release's schema.
    Migrate,
    /// One process of the sandbox. The gateway starts it by itself.
    #[command(name = WORKER, hide = true)]
    JsWorker,
    /// Reads one document in a process of its own. The gateway starts it by itself.
    #[command(hide = true)]
    Extract { form: String },
    /// Copy the SQLite database into a file, also while the gateway runs.
    Backup {
        /// The file that is made. It must not be there yet.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// One sentence for stderr.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Open(#[from] toolyard_store::OpenError),
    #[error("the database does not work: {0}")]
    Store(#[from] toolyard_store::StoreError),
    #[error("{0}")]
    Said(String),
}

impl CliError {
    fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }
}

/// Runs a command. What went wrong is one sentence on stderr.
pub(crate) async fn run(cli: Cli) -> ExitCode {
    match obey(cli).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("toolyard: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn obey(cli: Cli) -> Result<ExitCode, CliError> {
    let Cli { common, command } = cli;
    let mut flags = Flags { config: common.config.clone(), listen: None, data: common.data.clone() };
    if let Command::Serve { listen } = &command {
        flags.listen.clone_from(listen);
    }
    if let Command::Config(settings) = &command {
        return settings::obey(settings, &flags, common.json);
    }
    let config = config::load(&flags)?;
    match command {
        Command::Serve { .. } => Box::pin(serve::serve(config)).await?,
        Command::Agent(command) => agent::obey(command, &common, &config).await?,
        Command::A2a(command) => return a2a::obey(command, &common).await,
        Command::Key(command) => key::obey(command, &common, &config).await?,
        Command::Tenant(command) => tenant::obey(command, &common, &config).await?,
        Command::Plugin(command) => plugin::obey(command, &common, &config).await?,
        Command::Run(command) => run::obey(command, &common, &config).await?,
        Command::Chat(chat) => return Box::pin(chat::obey(*chat, &common, &config)).await,
        Command::Mcp(command) => mcp::obey(command, &common, &config).await?,
        Command::Doctor => return doctor::obey(&common, &config).await,
        // Done before: the configuration above, the sandbox in `main`.
        Command::Config(_) | Command::JsWorker | Command::Extract { .. } => {}
        Command::Migrate => migrate(&common, &config).await?,
        Command::Backup { file } => backup::obey(&file, &common, &config).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Opening brings the schema up to date. Where there is nothing to bring, a name
/// is misspelt: a database that is made here would hide that.
async fn migrate(common: &Common, config: &Config) -> Result<(), CliError> {
    if config.database_url.is_empty() && !toolyard_store::is_kept(&config.data) {
        let data = config.data.display();
        return Err(CliError::said(format!(
            "there is no database in {data}, so there is nothing to migrate: `toolyard serve` makes one, or name another folder with --data"
        )));
    }
    local::open(config).await?.close().await;
    let version = toolyard_store::known_version();
    print::value(common.json, &serde_json::json!({"schemaVersion": version}), |_| {
        format!("the database has schema version {version}")
    });
    Ok(())
}
