//! `toolyard chat`: a conversation with an agent, from a terminal.
//!
//! What the agent says goes to standard output, everything else to standard
//! error, so that a pipe gets the answer and nothing else. With `--json` every
//! event is one line on standard output instead.

mod answering;
mod input;
mod question;
mod setup;
mod show;
mod talk;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use toolyard_client::ClientError;

use super::{CliError, Common};
use crate::config::Config;
use input::Input;
use setup::Place;
use show::Screen;
use talk::{Ended, Talk};

/// As shells say that a signal ended a program.
const INTERRUPTED: u8 = 130;
/// A question was left open.
const LEFT_OPEN: u8 = 3;

#[derive(Debug, Args)]
pub(super) struct Chat {
    /// What to say. Without it the conversation goes on until the input ends.
    message: Option<String>,
    /// The agent, by name. Without it the default agent, or the one of --space.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Go on in this space.
    #[arg(long, value_name = "ID")]
    space: Option<String>,
    /// The model, instead of the agent's own.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Tools that run here: filesystem:/path, sqlite:/file.db or time. Again for more.
    #[arg(long, value_name = "PLUGIN")]
    plugin: Vec<String>,
    /// A file of MCP servers that run here, in the mcpServers form.
    #[arg(long, value_name = "FILE")]
    mcp: Option<PathBuf>,
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        Self::said(error.to_string())
    }
}

pub(super) async fn obey(chat: Chat, common: &Common, config: &Config) -> Result<ExitCode, CliError> {
    let screen = Screen::new(common.json);
    let client = setup::client(&chat, common, config).await?;
    let done = converse(&chat, &client, config, &screen).await;
    client.unregister_all().await;
    done
}

async fn converse(
    chat: &Chat,
    client: &toolyard_client::Client,
    config: &Config,
    screen: &Screen,
) -> Result<ExitCode, CliError> {
    let place: Place = setup::place(chat, client, config).await?;
    screen.place(&place);
    for warning in client.gateway_warnings() {
        screen.note(&format!("the gateway warns: {warning}"));
    }
    let mut input = Input::new()?;
    let mut talk = Talk { client, place: &place, model: chat.model.as_deref(), screen, input: &mut input };
    if let Some(message) = &chat.message {
        return Ok(code(talk.turn(message).await?));
    }
    let mut last = Ended::Well;
    while let Some(message) = talk.input.next_message(screen).await {
        let message = message.trim();
        match message {
            "" => continue,
            "/exit" | "/quit" => break,
            _ => {}
        }
        last = talk.turn(message).await?;
        // Whoever is gone cannot answer.
        if matches!(last, Ended::Left | Ended::Open) {
            return Ok(code(last));
        }
    }
    // A person has seen how it went; a program looks at the code.
    Ok(if talk.input.is_terminal() { ExitCode::SUCCESS } else { code(last) })
}

fn code(ended: Ended) -> ExitCode {
    match ended {
        Ended::Well => ExitCode::SUCCESS,
        Ended::Badly => ExitCode::FAILURE,
        Ended::Open => LEFT_OPEN.into(),
        Ended::Left => INTERRUPTED.into(),
    }
}
