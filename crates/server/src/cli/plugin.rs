//! `toolyard plugin`: keys, signatures, and what is installed.

mod files;
mod stored;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::reach::{Reach, reach, reach_or_make};
use super::{CliError, Common};
use crate::config::Config;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Algorithm {
    Ed25519,
    /// RSASSA-PKCS1-v1_5 with SHA-256, 3072 bits.
    Rsa,
}

#[derive(Debug, Subcommand)]
pub(super) enum Plugin {
    /// Make a curator's key: FILE keeps the private part, FILE.pub the public one.
    Keygen {
        /// The file that keeps the private part.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Whose key it is, as plugins name their curator.
        #[arg(long, value_name = "NAME")]
        curator: String,
        /// The kind of key.
        #[arg(long, value_enum, default_value = "ed25519")]
        algorithm: Algorithm,
    },
    /// Audit a plugin and sign it.
    Sign {
        /// The plugin, a JSON file.
        plugin: PathBuf,
        /// The curator's private key, as `plugin keygen` wrote it.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Where the signed plugin goes.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Is it genuine? Exits with 0 only if it is.
    Verify {
        /// The signed plugin, a JSON file.
        plugin: PathBuf,
        /// A public key; several for several curators.
        #[arg(long, value_name = "FILE", required = true)]
        key: Vec<PathBuf>,
        /// Curators that must have signed.
        #[arg(long, default_value_t = 1)]
        threshold: usize,
    },
    /// Trust a curator's public key for some plugins.
    Trust {
        /// The curator's public key, as `plugin keygen` wrote it (FILE.pub).
        key: PathBuf,
        /// A plugin's id, the start of ids with * behind it, or *.
        #[arg(long = "plugin", value_name = "PATTERN", required = true)]
        plugins: Vec<String>,
    },
    /// Install a plugin.
    Install {
        /// The plugin, a JSON file.
        plugin: PathBuf,
    },
    /// List what is installed, and who vouches for it.
    List,
    /// Take an installed plugin away.
    Uninstall {
        /// The plugin's id, as `plugin list` shows it.
        id: String,
    },
    /// Trust something no longer, for ever.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Revoke {
    /// A plugin; with --version this version of it.
    #[arg(long, value_name = "ID", required_unless_present_any = ["key", "curator"])]
    plugin: Option<String>,
    /// Only this version of the plugin.
    #[arg(long, requires = "plugin")]
    version: Option<String>,
    /// The id of a curator's key.
    #[arg(long, value_name = "ID", conflicts_with_all = ["plugin", "curator"])]
    key: Option<String>,
    /// All that this curator signed.
    #[arg(long, value_name = "NAME", conflicts_with = "plugin")]
    curator: Option<String>,
    /// Whoever calls a tool of it reads this.
    #[arg(long)]
    reason: String,
    /// Also what nobody here knows yet.
    #[arg(long)]
    ahead: bool,
}

pub(super) async fn obey(command: Plugin, common: &Common, config: &Config) -> Result<(), CliError> {
    let json = common.json;
    // Keys and signatures need neither a gateway nor a database.
    let command = match command {
        Plugin::Keygen { out, curator, algorithm } => return files::keygen(&out, &curator, algorithm, json),
        Plugin::Sign { plugin, key, out } => return files::sign(&plugin, &key, &out, json),
        Plugin::Verify { plugin, key, threshold } => return files::verify(&plugin, &key, threshold, json),
        other => other,
    };
    let reached = match command {
        Plugin::Trust { key: ref file, .. } | Plugin::Install { plugin: ref file } => {
            // A file that is not there is named before a database is made for it.
            files::read(file)?;
            reach_or_make(common, config).await?
        }
        Plugin::Keygen { .. }
        | Plugin::Sign { .. }
        | Plugin::Verify { .. }
        | Plugin::List
        | Plugin::Uninstall { .. }
        | Plugin::Revoke(_) => reach(common, config).await?,
    };
    match reached {
        Reach::Gateway(gateway) => stored::at_gateway(command, &gateway, json).await,
        Reach::Database(store) => {
            let done = stored::in_database(command, &store, config, json).await;
            store.close().await;
            done
        }
    }
}
