//! News of a client tool that takes long (row H66): an event that every
//! dialect shows in its way. It also says that the program is still at it.

use std::sync::Arc;

use serde_json::Value;
use toolyard_engine::facts::Refusal;
use toolyard_protocol::event::{Event, ToolProgressed};
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{
    ApiError, CallId, ClientId, ConnectionId, ErrorCode, Guarded, RunId, Timestamp, limits,
};
use toolyard_store::waits::{self, Claim, WaitRow};
use toolyard_store::{StoreError, Tx};

use super::results::forbidden;
use super::{Caller, Held};
use crate::refused::Refused;
use crate::runtime::Runtime;

/// What a program tells of a call that it works on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgressIn {
    /// From 0 to 1.
    pub fraction: Option<f64>,
    pub message: Option<String>,
    /// What is known of the result so far.
    pub preliminary: Option<Value>,
}

/// Which program works on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Worked {
    pub client: ClientId,
    pub connection: Option<ConnectionId>,
}

/// Progress that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progressed {
    /// How often the call may tell more.
    pub left: u64,
    /// Until when the call is the program's, if it said who it is.
    pub claimed_until: Option<Timestamp>,
}

impl Runtime {
    /// Logs progress of an open client call, and renews the claim of the
    /// program that works on it.
    pub async fn progress(
        self: &Arc<Self>,
        caller: Caller,
        run: RunId,
        call: CallId,
        progress: ProgressIn,
        by: Option<Worked>,
    ) -> Result<Progressed, ApiError> {
        let progress = checked(progress)?;
        let taken = self
            .fact(move |tx, desk| {
                Box::pin(async move {
                    let (held, wait, open) = find(tx, &caller, &run, &call).await?;
                    let row = &held.row;
                    let count = waits::progressed(tx, &row.tenant, &row.id, &wait.wait.id).await?;
                    let count = count.ok_or(Refusal::WaitEnded)?;
                    let most = limits::PROGRESS;
                    if count > most {
                        let text = format!("A call tells of its progress at most {most} times");
                        let limit = u64::try_from(most).unwrap_or(0);
                        return Err(ApiError::limit(ErrorCode::LimitExceeded, limit, text).into());
                    }
                    let claimed_until = renew(tx, &wait, by.as_ref()).await?;
                    let event = event(&wait, progress);
                    held.append(tx, vec![event], open, false, desk).await?;
                    Ok(Progressed { left: u64::try_from(most - count).unwrap_or(0), claimed_until })
                })
            })
            .await?;
        Ok(taken)
    }

    /// Says that a program is still at a call, without an event.
    pub async fn still_working(
        self: &Arc<Self>,
        caller: Caller,
        run: RunId,
        call: CallId,
        by: Worked,
    ) -> Result<Timestamp, ApiError> {
        let until = self
            .fact(move |tx, _| {
                Box::pin(async move {
                    let (_, wait, _) = find(tx, &caller, &run, &call).await?;
                    let until = renew(tx, &wait, Some(&by)).await?;
                    let text = "Another client has claimed this call";
                    Ok(until.ok_or_else(|| ApiError::new(ErrorCode::Conflict, text))?)
                })
            })
            .await?;
        Ok(until)
    }
}

fn checked(progress: ProgressIn) -> Result<ProgressIn, ApiError> {
    let ProgressIn { fraction, message, preliminary } = progress;
    if fraction.is_none() && message.is_none() && preliminary.is_none() {
        return Err(ApiError::missing("fraction"));
    }
    if fraction.is_some_and(|f| !(0.0..=1.0).contains(&f)) {
        return Err(ApiError::new(ErrorCode::BadRequest, "fraction: must be from 0 to 1"));
    }
    let most = limits::PROGRESS_CHARS;
    if message.as_ref().is_some_and(|text| text.chars().count() > most) {
        let text = format!("message: has more than {most} characters");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, text));
    }
    let most = limits::PROGRESS_BYTES;
    if preliminary.as_ref().is_some_and(|value| value.to_string().len() > most) {
        let text = format!("preliminary: has more than {most} bytes");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, text));
    }
    let message = message.map(|text| toolyard_schema::clean(&text, usize::MAX).text);
    Ok(ProgressIn { fraction, message, preliminary })
}

/// The open wait of a client call, of this run or one below it, with its run
/// held and the number of waits that are open there.
async fn find(
    tx: &mut Tx<'_>,
    caller: &Caller,
    run: &RunId,
    call: &CallId,
) -> Result<(Held, WaitRow, usize), Refused> {
    let missing = || ApiError::not_found("Tool call");
    let is_it = |row: &&WaitRow| row.wait.call == *call && row.wait.kind == WaitKind::Client;
    let tenant = &caller.tenant;
    let held = Held::lock(tx, tenant, run).await?.ok_or_else(|| ApiError::not_found("Run"))?;
    let own = waits::of_run(tx, tenant, run).await?;
    let (held, all) = if own.iter().any(|row| is_it(&row)) {
        (held, own)
    } else {
        let below = waits::below(tx, tenant, run).await?;
        let child = below.iter().find(is_it).ok_or_else(missing)?.wait.run.clone();
        let held = Held::lock(tx, tenant, &child).await?.ok_or_else(missing)?;
        (held, waits::of_run(tx, tenant, &child).await?)
    };
    let wait = all.iter().find(is_it).ok_or_else(missing)?.clone();
    if !may_answer(&caller.viewer, &wait.wait.rule) {
        return Err(forbidden().into());
    }
    if wait.ended_seq.is_some() {
        let ended = held.row.status.is_final();
        return Err(if ended { Refusal::RunEnded } else { Refusal::WaitEnded }.into());
    }
    let open = all.iter().filter(|row| row.ended_seq.is_none()).count();
    Ok((held, wait, open))
}

async fn renew(
    tx: &mut Tx<'_>,
    wait: &WaitRow,
    by: Option<&Worked>,
) -> Result<Option<Timestamp>, StoreError> {
    let Some(by) = by else { return Ok(None) };
    let until = tx.now().await?.plus_millis(limits::CLAIM_SECONDS * 1000);
    let mine = Claim { client: &by.client, connection: by.connection.as_ref(), until };
    let renewed = waits::claim_for(tx, &wait.tenant, &wait.wait.run, &wait.wait.id, mine).await?;
    Ok(renewed.then_some(until))
}

fn event(wait: &WaitRow, progress: ProgressIn) -> Event {
    let ProgressIn { fraction, message, preliminary } = progress;
    ToolProgressed {
        call: wait.wait.call.clone(),
        tool: wait.wait.tool.clone(),
        visibility: wait.wait.visibility,
        fraction,
        message: message.map_or(Guarded::Hidden, Guarded::Shown),
        preliminary: preliminary.map_or(Guarded::Hidden, Guarded::Shown),
        ticket: Guarded::Hidden,
        spent: Guarded::Hidden,
    }
    .into()
}
