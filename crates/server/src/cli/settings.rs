//! `toolyard config`

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::{CliError, print};
use crate::config::{self, Flags};
use crate::routes::openapi;

#[derive(Debug, Subcommand)]
pub(super) enum Settings {
    /// Read the configuration and say what is wrong with it.
    Check,
    /// Print the effective configuration, secrets hidden.
    Print,
    /// Print the JSON Schema of the file.
    Schema,
    /// Print the OpenAPI document.
    #[command(hide = true)]
    Openapi,
}

pub(super) fn obey(command: &Settings, flags: &Flags, as_json: bool) -> Result<ExitCode, CliError> {
    match command {
        Settings::Check => {
            crate::serve::rehearse(&config::load(flags)?)?;
            print::value(as_json, &json!({"ok": true}), |_| "the configuration is fine".to_owned());
        }
        Settings::Print => {
            let config = config::load(flags)?;
            let value = serde_json::to_value(&config).unwrap_or_default();
            print::value(as_json, &value, |_| config::print(&config));
        }
        Settings::Schema => print::line(format_args!("{:#}", config::schema())),
        Settings::Openapi => print::line(format_args!("{:#}", openapi::document())),
    }
    Ok(ExitCode::SUCCESS)
}
