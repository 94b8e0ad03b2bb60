//! What the person types, or a pipe brings. A line is read when it is needed:
//! lines that come too early wait.

use std::io::IsTerminal;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::show::Screen;
use crate::cli::CliError;

/// Lines that may wait; the reader stops at more.
const LINES: usize = 8;

/// Standard input, and Ctrl-C.
pub(super) struct Input {
    lines: mpsc::Receiver<String>,
    interrupts: Signal,
    terminal: bool,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Line(String),
    /// The input is over.
    End,
    /// Ctrl-C.
    Interrupt,
}

impl Input {
    pub(super) fn new() -> Result<Self, CliError> {
        let (send, lines) = mpsc::channel(LINES);
        // A thread of its own: reading cannot be interrupted, and the process
        // must be able to end while it waits.
        let reader = std::thread::Builder::new().name("terminal".to_owned());
        let spawned = reader.spawn(move || {
            for line in std::io::stdin().lines() {
                let Ok(line) = line else { break };
                if send.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        spawned.map_err(|e| CliError::said(format!("the input cannot be read: {e}")))?;
        let interrupts = signal(SignalKind::interrupt());
        let interrupts = interrupts.map_err(|e| CliError::said(format!("no signals: {e}")))?;
        Ok(Self { lines, interrupts, terminal: std::io::stdin().is_terminal() })
    }

    pub(super) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Ctrl-C, and a line if one is wanted now.
    pub(super) async fn hear(&mut self, wants_line: bool) -> Heard {
        let Self { lines, interrupts, .. } = self;
        tokio::select! {
            line = lines.recv(), if wants_line => line.map_or(Heard::End, Heard::Line),
            Some(()) = interrupts.recv() => Heard::Interrupt,
            else => std::future::pending().await,
        }
    }

    /// A terminal has shown the line, and is on the next one.
    pub(super) fn typed(&self, screen: &Screen) {
        if self.terminal {
            screen.entered();
        }
    }

    /// The next thing to say; none if the person leaves.
    pub(super) async fn next_message(&mut self, screen: &Screen) -> Option<String> {
        let mut warned = false;
        loop {
            if self.terminal {
                screen.prompt("> ");
            }
            match self.hear(true).await {
                Heard::Line(line) => {
                    self.typed(screen);
                    return Some(line);
                }
                Heard::End => return None,
                Heard::Interrupt if warned => return None,
                Heard::Interrupt => {
                    screen.note("Ctrl-C again, or Ctrl-D, leaves.");
                    warned = true;
                }
            }
        }
    }
}

/// Hides what is typed while it lives, on a terminal.
pub(super) struct Hidden {
    before: Option<rustix::termios::Termios>,
}

impl Hidden {
    pub(super) fn new() -> Self {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(&stdin, OptionalActions::Now, &quiet);
        }
        Self { before }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
