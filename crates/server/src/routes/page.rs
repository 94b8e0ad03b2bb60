//! Pages of lists: `limit`, and a cursor that continues.

use std::collections::HashMap;
use std::fmt::Display;

use futures::future::BoxFuture;
use toolyard_protocol::{ApiError, ErrorCode, TenantId, limits};
use toolyard_store::{StoreError, Tx};

use super::call::Call;
use crate::http::Refusal;

/// What the query of a list says.
pub(super) const LIMIT: (&str, &str) = ("limit", "Rows of the page: 50 if missing, at most 200.");
pub(super) const BEFORE: (&str, &str) = ("before", "Continue after this row: the `next` of the page before.");

/// Rows wanted. More than the most is the most.
pub(super) fn limit(query: &HashMap<String, String>) -> Result<u32, Refusal> {
    match query.get("limit") {
        None => Ok(limits::PAGE),
        Some(text) => match text.parse::<u32>() {
            Ok(0) | Err(_) => Err(Refusal::bad_request("limit: must be a whole number above 0")),
            Ok(rows) => Ok(rows.min(limits::PAGE_MAX)),
        },
    }
}

/// Refuses a filter that the list does not know: without it everything would be
/// listed, and whoever misspelt it would take a row of somebody else's for theirs.
pub(super) fn known(query: &HashMap<String, String>, names: &[&str]) -> Result<(), Refusal> {
    match query.keys().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(other) => {
            let other: String = other.chars().take(64).collect();
            let text = format!("{other:?} is no filter of this list. It knows {}", names.join(", "));
            Err(Refusal::bad_request(text))
        }
    }
}

/// A typed parameter of the query. Garbage is said, never ignored.
pub(super) fn typed<T, E>(
    query: &HashMap<String, String>,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, Refusal> {
    // An empty value is a script's unset variable: listing everything instead would surprise.
    let Some(text) = query.get(name) else { return Ok(None) };
    parse(text).map(Some).map_err(|_| {
        ApiError::new(ErrorCode::InvalidCursor, format!("{name}: not a value that this list knows")).into()
    })
}

/// A position in a log or a space.
pub(super) fn position(query: &HashMap<String, String>, name: &str) -> Result<Option<i64>, Refusal> {
    typed(query, name, |text| text.parse::<i64>().ok().filter(|n| *n >= 0).ok_or(()))
}

/// The cursor of the next page, if this one is full.
pub(super) fn next<T>(rows: &[T], limit: u32, id: impl Fn(&T) -> String) -> Option<String> {
    (rows.len() >= limit as usize).then(|| rows.last().map(id)).flatten()
}

/// One page of a list by ids, the newest first.
pub(super) struct Page<I> {
    pub(super) before: Option<I>,
    pub(super) limit: u32,
}

impl<I: Display + Send + 'static> Page<I> {
    /// What the query asks for.
    pub(super) fn asked<E>(call: &Call, parse: impl FnOnce(&str) -> Result<I, E>) -> Result<Self, Refusal> {
        Ok(Self { limit: limit(&call.query)?, before: typed(&call.query, "before", parse)? })
    }

    /// Its rows, and where the next page begins.
    pub(super) async fn rows<R, F>(
        self,
        call: &Call,
        list: F,
        id: impl Fn(&R) -> &I,
    ) -> Result<(Vec<R>, Option<String>), Refusal>
    where
        R: Send + 'static,
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>, TenantId, Self) -> BoxFuture<'t, Result<Vec<R>, StoreError>>
            + Send
            + 'static,
    {
        let (limit, tenant) = (self.limit, call.tenant().clone());
        let rows = call.store().read::<_, StoreError, _>(move |tx| list(tx, tenant, self)).await?;
        let next = next(&rows, limit, |row| id(row).to_string());
        Ok((rows, next))
    }
}
