//! What the gateway and a sandbox process say to each other: JSON behind its
//! length, over the process's stdin and stdout.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::error::SandboxError;
use super::job::{ConsoleLine, Form, Limits};

/// Bytes of the length in front of each message.
pub(super) const HEAD: usize = 4;

/// From the gateway.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    Run(Task),
    /// What follows are calls of these functions, in one runtime.
    Sit(Scene),
    Call {
        function: String,
        value: Box<RawValue>,
    },
    /// Nobody calls any more.
    Leave,
    /// The answer to [`Report::Asked`].
    Told {
        id: u32,
        answer: Result<Box<RawValue>, String>,
    },
}

/// A job as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) form: Form,
    pub(super) code: String,
    pub(super) prelude: Option<String>,
    /// Names, and values in the same order.
    pub(super) names: Vec<String>,
    pub(super) values: Box<RawValue>,
    pub(super) finite: bool,
    /// Whether somebody answers questions.
    pub(super) host: bool,
    pub(super) limits: Limits,
}

/// A script as it travels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Scene {
    /// Name, parameters and code of each function.
    pub(super) functions: Vec<(String, Vec<String>, String)>,
    /// The function that comes before all others in a fresh runtime.
    pub(super) first: Option<String>,
    /// Ours: the body of a function that gives the function that calls the others.
    pub(super) driver: String,
    pub(super) prelude: Option<String>,
    pub(super) host: bool,
    pub(super) limits: Limits,
}

/// From the process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// A fresh runtime stands ready.
    Ready,
    Asked {
        id: u32,
        name: String,
        value: Box<RawValue>,
    },
    Done(Done),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) outcome: Result<Given, SandboxError>,
    pub(super) console: Vec<ConsoleLine>,
    pub(super) took_us: u64,
    /// The process ends now.
    pub(super) retires: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Given {
    pub(super) value: Box<RawValue>,
    pub(super) lost: Option<String>,
}

/// A whole message, length in front.
pub(super) fn pack(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - HEAD).map_err(io::Error::other)?;
    bytes[..HEAD].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(bytes)?)
}

/// The length a head names, refused above `most`.
pub(super) fn length(head: [u8; HEAD], most: usize) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length > most {
        return Err(io::Error::other(format!("a message of {length} bytes, the limit is {most}")));
    }
    Ok(length)
}

pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    to.write_all(&pack(message)?).await?;
    to.flush().await
}

/// The next message, or nothing when the other side is gone.
pub(super) async fn receive<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    most: usize,
) -> io::Result<T> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head).await?;
    let mut bytes = vec![0; length(head, most)?];
    from.read_exact(&mut bytes).await?;
    unpack(&bytes)
}
