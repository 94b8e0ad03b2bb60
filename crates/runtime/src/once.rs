//! `Idempotency-Key`: a command happens once, and its answer is kept in its
//! own transaction.

use toolyard_protocol::{ApiError, ErrorCode};
use toolyard_store::Tx;
use toolyard_store::idempotency::{self, Known};

use crate::command::{Fresh, Once};
use crate::refused::Refused;

/// Reserves the key. Answers what was said before, if it was.
pub async fn begin<T>(tx: &mut Tx<'_>, once: Option<&Once<T>>) -> Result<Option<Fresh<T>>, Refused> {
    let Some(once) = once else { return Ok(None) };
    match idempotency::begin(tx, &once.scope).await? {
        Known::Fresh => Ok(None),
        Known::Stored { status, response } => Ok(Some(Fresh::Before { status, response })),
        Known::Mismatch => {
            let text = "This Idempotency-Key was used with another request body";
            Err(ApiError::new(ErrorCode::IdempotencyMismatch, text).into())
        }
    }
}

/// Keeps the answer.
pub async fn finish<T>(tx: &mut Tx<'_>, once: Option<&Once<T>>, value: &T) -> Result<(), Refused> {
    if let Some(once) = once {
        let (status, response) = (once.respond)(value);
        idempotency::finish(tx, &once.scope, status, &response).await?;
    }
    Ok(())
}
