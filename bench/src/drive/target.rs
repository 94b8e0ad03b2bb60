//! The servers that are compared, and how each is started.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use super::DriveError;
use super::api::{AiSdk, Api, Direct, Floor, LangGraph, Native, PydanticAi, SECRET_KEY};
use super::process::{Process, free_address};

/// A server under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Target {
    /// No server: the client talks to the mock.
    Direct,
    /// The bare server in memory.
    Floor,
    /// The bare server that commits every step.
    FloorDb,
    /// The product.
    Toolyard,
    /// The AI SDK's chat server on Node. The client keeps the conversation.
    #[value(name = "aisdk")]
    AiSdk,
    /// LangGraph with checkpoints in SQLite.
    #[value(name = "langgraph")]
    LangGraph,
    /// Pydantic AI behind AG-UI. The client keeps the conversation.
    PydanticAi,
}

impl Target {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Floor => "floor",
            Self::FloorDb => "floor-db",
            Self::Toolyard => "toolyard",
            Self::AiSdk => "aisdk",
            Self::LangGraph => "langgraph",
            Self::PydanticAi => "pydantic-ai",
        }
    }

    /// A server of other people: `bench/peers`.
    pub(super) const fn is_peer(self) -> bool {
        matches!(self, Self::AiSdk | Self::LangGraph | Self::PydanticAi)
    }

    /// Why this server cannot do a scenario.
    pub(super) const fn cannot(self, scenario: &str) -> Option<&'static str> {
        match (self, scenario.as_bytes()) {
            (Self::Direct, b"S5" | b"S6") => Some("there is no server"),
            (Self::AiSdk | Self::PydanticAi, b"S6") => {
                Some("a waiting run is the client's: the server keeps nothing of it")
            }
            _ => None,
        }
    }
}

/// Where the programs are.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) rig: PathBuf,
    pub(super) toolyard: PathBuf,
    /// The sources and the installed packages of the peers.
    pub(super) peers: PathBuf,
    pub(super) installed: PathBuf,
}

impl Programs {
    pub(super) async fn start_upstream(&self, folder: &Path) -> Result<Process, DriveError> {
        let address = free_address()?;
        let mut command = Command::new(self.rig.join("upstream"));
        command.arg("--listen").arg(address.to_string());
        Process::start(command, address, None, folder.join("upstream.log")).await
    }

    /// Starts a server on a data folder. `Direct` has no server of its own.
    pub(super) async fn start(
        &self,
        target: Target,
        upstream: SocketAddr,
        folder: &Path,
    ) -> Result<Option<Process>, DriveError> {
        let address = free_address()?;
        let mut command = match target {
            Target::Direct => return Ok(None),
            Target::Floor | Target::FloorDb => Command::new(self.rig.join("floor")),
            Target::Toolyard => Command::new(&self.toolyard),
            Target::AiSdk => {
                let mut node = Command::new(self.installed.join("node/node_modules/node/bin/node"));
                // Node looks for packages from the program's place.
                node.arg(self.installed.join("node/aisdk.mjs"));
                node.env("NODE_ENV", "production");
                node
            }
            Target::LangGraph => self.python("langgraph", "langgraph_server.py"),
            Target::PydanticAi => self.python("pydantic-ai", "pydantic_ai_server.py"),
        };
        match target {
            Target::Direct
            | Target::Floor
            | Target::FloorDb
            | Target::AiSdk
            | Target::LangGraph
            | Target::PydanticAi => {
                command.arg("--upstream").arg(upstream.to_string());
                if matches!(target, Target::FloorDb | Target::LangGraph) {
                    command.arg("--data").arg(folder);
                }
            }
            Target::Toolyard => {
                let config = folder.join("toolyard.toml");
                let text = format!(
                    "[keys]\nsecret = \"{SECRET_KEY}\"\n[providers.mock]\nkind = \"openai\"\nbase_url = \"http://{upstream}/v1\"\n"
                );
                fs::write(&config, text).map_err(|e| DriveError::File("toolyard.toml".to_owned(), e))?;
                command.arg("serve").arg("--config").arg(config).arg("--data").arg(folder);
                command.current_dir(folder);
            }
        }
        command.arg("--listen").arg(address.to_string());
        Process::start(command, address, Some("/ready"), folder.join("server.log")).await.map(Some)
    }

    fn python(&self, name: &str, program: &str) -> Command {
        let mut python = Command::new(self.installed.join(name).join("bin/python"));
        python.arg(self.peers.join(program)).env("LANGSMITH_TRACING", "false");
        python
    }
}

impl Target {
    /// The way to talk to a started server.
    pub(super) async fn api(self, server: SocketAddr) -> Result<Api, DriveError> {
        Ok(match self {
            Self::Direct => Api::Direct(Direct::new(server)),
            Self::Floor | Self::FloorDb => Api::Floor(Floor::new(server)),
            Self::Toolyard => Api::Native(Native::prepare(server).await?),
            Self::AiSdk => Api::AiSdk(AiSdk::new(server)),
            Self::LangGraph => Api::LangGraph(LangGraph::new(server)),
            Self::PydanticAi => Api::PydanticAi(PydanticAi::new(server)),
        })
    }

    /// Its database inside the data folder.
    pub(super) fn database(self, folder: &Path) -> Option<PathBuf> {
        match self {
            Self::Direct | Self::Floor | Self::AiSdk | Self::PydanticAi => None,
            Self::LangGraph => Some(folder.join("langgraph.db")),
            Self::FloorDb => Some(folder.join("floor.db")),
            Self::Toolyard => Some(folder.join("toolyard.db")),
        }
    }
}

/// Bytes that a database uses, with what is still in its journal.
pub(super) fn used_bytes(database: &Path) -> Result<f64, DriveError> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let conn = rusqlite::Connection::open_with_flags(database, flags)?;
    let number = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, f64>(0));
    let (pages, free, size) = (number("page_count")?, number("freelist_count")?, number("page_size")?);
    Ok((pages - free) * size)
}
