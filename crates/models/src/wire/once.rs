//! A question with one answer: no stream, the same way there, the same
//! repeats.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;
use toolyard_egress::{Letter, Patience, Target, Verb};

use super::fault;
use super::line::{Attempt, Line};
use super::session::refusal;
use super::{REPLY_BYTES, Refusal};
use crate::error::{Detail, ModelError};
use crate::retry::noise;

/// Sends a body and reads the whole answer as `T`. Nobody has seen any of it
/// before, so each failure that may pass is tried again.
pub(crate) async fn ask<T: DeserializeOwned>(
    line: &Line,
    target: &Target,
    body: &Value,
    refused: fn(&Refusal) -> ModelError,
) -> Result<T, ModelError> {
    let body = Bytes::from(body.to_string());
    let mut repeats = 0;
    loop {
        let error = match send(line, target, &body, refused).await {
            Ok(answer) => return read(&answer).map_err(|error| error.sealed(&line.secrets)),
            Err(error) => error,
        };
        let pause = match error.retryable() {
            true => line.retry.pause(repeats, error.retry_after(), noise()),
            false => None,
        };
        let Some(pause) = pause else { return Err(error.sealed(&line.secrets)) };
        repeats += 1;
        sleep(pause).await;
    }
}

async fn send(
    line: &Line,
    target: &Target,
    body: &Bytes,
    refused: fn(&Refusal) -> ModelError,
) -> Result<Vec<u8>, ModelError> {
    let mut headers = line.headers.clone();
    if let Some(sign) = &line.sign {
        let attempt = Attempt { method: "POST", url: target.exposed(), headers: &headers, body };
        let signed = sign.sign(&attempt)?;
        headers.extend(signed);
    }
    let timeouts = line.timeouts;
    let letter = Letter {
        verb: Verb::Post,
        target,
        headers: &headers,
        accept: "application/json",
        body: Some(body.clone()),
        // The head comes when all is done: images take their time.
        patience: Patience { head: timeouts.stall, idle: timeouts.idle, bytes: REPLY_BYTES },
    };
    let mut answer = line.door.send(letter).await.map_err(fault::of_egress)?;
    if !answer.is_success() {
        return Err(refused(&refusal(answer).await));
    }
    answer.body.read_all().await.map_err(fault::of_egress)
}

fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ModelError> {
    serde_json::from_slice(answer).map_err(|why| {
        let start = String::from_utf8_lossy(&answer[..answer.len().min(1024)]);
        ModelError::Unreadable { detail: Detail::new(format!("{why} in: {start}")) }
    })
}
