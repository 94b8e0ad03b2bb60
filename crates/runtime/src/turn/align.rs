//! Lays a client's history beside the stored one: what is known, what is new,
//! and where a branch begins.

use toolyard_protocol::message::{Message, Part, Speaker, text_of};
use toolyard_protocol::{ApiError, ErrorCode, KeyKind, RunId, TenantId, limits};
use toolyard_store::{StoreError, Tx, messages, runs, threads};

use super::place::Place;
use super::{Cut, Item, Turn};
use crate::refused::Refused;

/// How a request continues what is stored.
#[derive(Debug)]
pub(super) struct Aligned<'t> {
    /// The last item that is known.
    pub(super) known: Option<Message>,
    /// What comes after it.
    pub(super) fresh: Vec<&'t Item>,
    /// A branch begins behind this position.
    pub(super) fork: Option<i64>,
}

pub(super) async fn align<'t>(
    tx: &mut Tx<'_>,
    turn: &'t Turn,
    place: &Place,
) -> Result<Aligned<'t>, Refused> {
    // A public key speaks as user, and of its assistant.
    let may = |item: &&Item| item.speaker != Speaker::System || turn.by.kind == KeyKind::Secret;
    let items: Vec<&Item> = turn.items.iter().filter(may).collect();
    if items.is_empty() && turn.cut.is_none() && turn.replies.is_empty() {
        return Err(ApiError::missing("messages").into());
    }
    if !items.is_empty() && items.iter().all(|item| item.name.is_none()) {
        return by_text(tx, turn, place, items).await;
    }
    let tenant = &turn.by.tenant;
    let (mut known, mut fresh) = (None, Vec::new());
    for item in items.iter().rev() {
        known = match &item.name {
            Some(name) => find(tx, tenant, place, name).await?,
            None => None,
        };
        if known.is_some() {
            break;
        }
        fresh.push(*item);
    }
    fresh.reverse();
    check_count(fresh.len())?;
    match &turn.cut {
        None => Ok(Aligned { known, fresh, fork: None }),
        Some(Cut::Regenerate { message }) => {
            let target = match message {
                Some(name) => find(tx, tenant, place, name).await?,
                None => None,
            };
            let fork = target.as_ref().or(known.as_ref()).map(before_answer);
            Ok(Aligned { known, fresh, fork })
        }
        Some(Cut::Edit { message }) => {
            let said = find(tx, tenant, place, message).await?.filter(|m| m.speaker == Speaker::User);
            let at = items.iter().position(|item| item.name.as_ref() == Some(message));
            let (Some(said), Some(at)) = (said, at) else { return Ok(Aligned { known, fresh, fork: None }) };
            let fresh = items[at..].to_vec();
            // The same words again, while they are being answered: a repeat.
            if fresh.len() == 1 && fresh[0].parts == said.parts && !is_answered(tx, place, &said).await? {
                return Ok(Aligned { known: Some(said), fresh: Vec::new(), fork: None });
            }
            Ok(Aligned { known: None, fork: Some(said.seq - 1), fresh })
        }
    }
}

fn check_count(fresh: usize) -> Result<(), ApiError> {
    let most = limits::TURN_ITEMS;
    if fresh > most {
        let text = format!("messages: {fresh} of them are new, the limit is {most}");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, u64::try_from(most).unwrap_or(0), text));
    }
    Ok(())
}

/// The place before an answer; behind a question.
fn before_answer(message: &Message) -> i64 {
    match message.speaker {
        Speaker::Assistant => message.seq - 1,
        Speaker::User | Speaker::System => message.seq,
    }
}

async fn find(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    place: &Place,
    name: &str,
) -> Result<Option<Message>, StoreError> {
    match threads::message(tx, tenant, &place.space.id, name).await? {
        Some(id) => messages::get(tx, tenant, &id).await,
        None => Ok(None),
    }
}

/// Has the run that answers this message ended?
async fn is_answered(tx: &mut Tx<'_>, place: &Place, message: &Message) -> Result<bool, StoreError> {
    let (tenant, space) = (&place.caller.tenant, &place.space);
    let reply = messages::reply_after(tx, tenant, &space.id, &space.branch, message.seq).await?;
    let Some(run) = reply.and_then(|reply| reply.run) else { return Ok(false) };
    is_ended(tx, tenant, &run).await
}

async fn is_ended(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<bool, StoreError> {
    Ok(runs::get(tx, tenant, run).await?.is_none_or(|run| run.status.is_final()))
}

/// Without names: item by item from the front. The first that differs is new,
/// and starts a branch if something else is stored there.
async fn by_text<'t>(
    tx: &mut Tx<'_>,
    turn: &Turn,
    place: &Place,
    items: Vec<&'t Item>,
) -> Result<Aligned<'t>, Refused> {
    let (tenant, space) = (&turn.by.tenant, &place.space);
    let mut stored = messages::of_branch(tx, tenant, &space.id, &space.branch).await?;
    let (mut met, mut next) = (0, 0);
    for item in &items {
        // An answer in several steps is one message here and several there.
        let goes_on = met > 0 && item.speaker == Speaker::Assistant && is_said_in(item, &stored[met - 1]);
        if met < stored.len() && is_said_in(item, &stored[met]) {
            met += 1;
        } else if !goes_on {
            break;
        }
        next += 1;
    }
    let fresh = items[next..].to_vec();
    check_count(fresh.len())?;
    let more = met < stored.len();
    let known = (met > 0).then(|| stored.swap_remove(met - 1));
    let fork = match (&known, fresh.is_empty(), more) {
        (_, _, false) => None,
        (Some(known), true, true) => {
            // A question whose answer is there is asked again, unless it is on its way.
            let again = known.speaker == Speaker::User && is_answered(tx, place, known).await?;
            again.then_some(known.seq)
        }
        (known, false, true) => Some(known.as_ref().map_or(0, |known| known.seq)),
        (None, true, true) => None,
    };
    Ok(Aligned { known, fresh, fork })
}

/// Could this item be that message? Calls are told by their ids.
fn is_said_in(item: &Item, message: &Message) -> bool {
    if item.speaker != message.speaker {
        return false;
    }
    let calls = |parts: &[Part]| {
        parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall { call, .. } => Some(call.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let (said, stored) = (text_of(&item.parts), text_of(&message.parts));
    match item.speaker {
        Speaker::Assistant => {
            let known = calls(&message.parts);
            let own = calls(&item.parts);
            own.iter().all(|call| known.contains(call))
                && stored.contains(said.trim())
                && (!own.is_empty() || !said.trim().is_empty() || stored.is_empty())
        }
        Speaker::User | Speaker::System => said == stored,
    }
}
