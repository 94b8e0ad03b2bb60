//! A turn that says something new, or takes something back.

use std::sync::Arc;

use serde_json::json;
use toolyard_dialects::telling::Start;
use toolyard_engine::{Input, Run, State};
use toolyard_protocol::event::{CancelRequested, Event, MessageTaken, ToolsetReplaced, Trigger};
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::picks::Picks;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::tool::{ToolSpec, Toolset};
use toolyard_protocol::{ApiError, ErrorCode, Guarded, MessageId, RunId, TenantId, limits};
use toolyard_store::log::AppendError;
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::runs::{self, After, RunRow};
use toolyard_store::{StoreError, Tx, agents, branches, log, spaces, threads};

use super::align::Aligned;
use super::place::Place;
use super::replies::Taken;
use super::{Item, Turn, Turned};
use crate::agents::LoadedTools;
use crate::command::Disposition;
use crate::create::Birth;
use crate::ending::Ending;
use crate::facts::Held;
use crate::family;
use crate::post::{Word, feed_live};
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;

/// A turn with all that is known of it.
pub(super) struct Job<'t> {
    pub(super) turn: &'t Turn,
    pub(super) place: Place,
    pub(super) tools: Option<LoadedTools>,
    pub(super) taken: Taken,
}

impl Job<'_> {
    pub(super) fn turned(self, run: RunId, message: MessageId, start: Start, fresh: bool) -> Turned {
        let groups = if fresh { self.groups() } else { Vec::new() };
        Turned {
            space: self.place.space.id,
            run,
            message,
            start,
            kept: self.taken.kept,
            viewer: self.place.caller.viewer,
            fresh,
            groups,
        }
    }

    /// The agent's tools by category, and the client's own.
    fn groups(&self) -> Vec<(String, usize)> {
        let picked = |spec: &&ToolSpec| self.turn.picks.as_ref().is_none_or(|picks| picks.takes(spec));
        let mut groups: Vec<(String, usize)> = Vec::new();
        for spec in self.place.agent.tools.set.0.iter().filter(picked) {
            let group = spec.category.as_deref().unwrap_or("core");
            match groups.iter_mut().find(|(name, _)| name == group) {
                Some((_, count)) => *count += 1,
                None => groups.push((group.to_owned(), 1)),
            }
        }
        groups.push(("SDK client".to_owned(), self.turn.tools.len()));
        groups
    }

    /// What a continuing request changes of its run: the tools, the model.
    pub(super) async fn changes(&self, tx: &mut Tx<'_>, run: &Run) -> Result<Vec<Event>, Refused> {
        let tenant = &self.turn.by.tenant;
        let agents_own = &self.place.agent.tools;
        let current = match run.toolset() {
            Some(hash) if *hash == agents_own.hash => Some(agents_own.set.clone()),
            Some(hash) => agents::toolset(tx, tenant, hash).await?,
            None => None,
        };
        let loaded = self.tools.as_ref().map_or(&**agents_own, |tools| tools);
        let toolset = if current.is_some_and(|current| brought(&current) == brought(&loaded.set)) {
            Guarded::Hidden
        } else {
            agents::put_toolset(tx, tenant, &loaded.hash, &loaded.set).await?;
            Guarded::Shown(loaded.hash.clone())
        };
        let model = match &self.turn.model {
            Some(model) if run.model() != Some(model) => Guarded::Shown(model.clone()),
            Some(_) | None => Guarded::Hidden,
        };
        if toolset.is_hidden() && model.is_hidden() {
            return Ok(Vec::new());
        }
        Ok(vec![ToolsetReplaced { toolset, model }.into()])
    }
}

impl Runtime {
    /// Stores what is new and brings it to the agent.
    pub(super) async fn speak(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        mut job: Job<'_>,
        aligned: Aligned<'_>,
        desk: &mut Desk,
    ) -> Result<Turned, Refused> {
        let tenant = &job.turn.by.tenant.clone();
        let asks = aligned.fresh.iter().any(|item| item.speaker == Speaker::User);
        if aligned.fork.is_none() && !asks {
            return Err(nothing_new().into());
        }
        let mut live = runs::lock_live(tx, tenant, &job.place.space.id, &job.place.agent_entity).await?;
        if let Some(at) = aligned.fork {
            if let Some(row) = live.take() {
                self.abandon(tx, row, desk).await?;
            }
            let space = &mut job.place.space;
            space.branch = branches::fork(tx, tenant, &space.id, &space.branch, at).await?;
        }
        let said = store_items(tx, &job, &aligned.fresh).await?;
        if let Some(live) = live {
            let run = load(tx, &live).await?;
            let first = job.changes(tx, &run).await?;
            let heard: Vec<MessageId> =
                said.iter().filter(|m| m.speaker == Speaker::User).map(|m| m.id.clone()).collect();
            let word = Word { by: &job.turn.by, sender: Some(&job.place.owner), messages: &heard };
            if job.taken.accepted > 0 && matches!(run.state(), State::Thinking { .. }) {
                // Its last outputs came along: the model hears both at once.
                let taken = MessageTaken { messages: heard.clone() };
                let events = first.into_iter().chain([taken.into()]).collect();
                Held::root(live.clone()).append(tx, events, 0, false, desk).await?;
            } else if feed_live(tx, word, &live, first, desk).await? == Disposition::Rejected {
                let text = "The agent takes no messages while it works";
                return Err(ApiError::new(ErrorCode::RunBusy, text).into());
            }
            let Some(last) = heard.last().cloned() else { return Err(nothing_new().into()) };
            let message = MessageId::of_turn(&live.id, run.turn() + 1);
            return Ok(job.turned(live.id, message, Start::Taking(last), false));
        }
        let last = said.iter().rev().find(|m| m.speaker == Speaker::User).cloned();
        self.give_run(tx, job, last, is_tainted(&aligned.fresh), desk).await
    }

    /// Starts a run on what the branch says.
    pub(super) async fn give_run(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        job: Job<'_>,
        asked: Option<Message>,
        tainted: bool,
        desk: &mut Desk,
    ) -> Result<Turned, Refused> {
        let (turn, place) = (job.turn, &job.place);
        let (tenant, space) = (&turn.by.tenant, &place.space);
        let asked = match asked {
            Some(message) => Some(message),
            None => messages::user_before(tx, tenant, &space.id, &space.branch, i64::MAX).await?,
        };
        let asked = asked.ok_or_else(nothing_new)?;
        let here =
            spaces::get(tx, tenant, &space.id).await?.ok_or_else(|| ApiError::not_found("SmartSpace"))?;
        let seat = spaces::seat(tx, tenant, &space.id, &place.owner).await?;
        let birth = Birth {
            by: &turn.by,
            space: &here,
            agent_entity: &place.agent_entity,
            agent: &place.agent,
            triggered_by: Some(&place.owner),
            trigger: Some(Trigger { entity: place.owner.clone(), message: Some(asked.id) }),
            history_to: here.last_pos,
            metadata: turn.metadata.clone(),
            model: turn.model.as_deref(),
            picks: joined(seat.and_then(|seat| seat.picks), turn.picks.clone()),
            output: turn.output.clone(),
            tools: job.tools.as_ref(),
            tainted,
            trace: turn.trace.clone(),
            positions: None,
        };
        let (run, _) = self.give_birth(tx, birth, desk).await?;
        let message = MessageId::of_turn(&run, 1);
        Ok(job.turned(run, message, Start::Turn(1), true))
    }

    /// Ends a run whose conversation goes another way, in this transaction.
    async fn abandon(&self, tx: &mut Tx<'_>, row: RunRow, desk: &mut Desk) -> Result<(), Refused> {
        let mut run = load(tx, &row).await?;
        let owner = self.owner.clone();
        let Some(epoch) = runs::seize(tx, &row.tenant, &row.id, &owner).await? else { return Ok(()) };
        let reason = Some("The conversation went another way".to_owned());
        let cancel = Event::from(CancelRequested { reason, by: Guarded::Hidden });
        run.fold(&cancel);
        let mut events = vec![cancel];
        let why = String::new();
        events.extend(run.next(tx.now().await?, Input::Claimed { recovered: false, why }));
        events.iter().skip(1).for_each(|event| run.fold(event));
        let Some(finished) = run.finished() else {
            return Err(StoreError::broken("a canceled run does not end").into());
        };
        let end = family::end_of(&run, finished);
        let after = After { status: RunStatus::Canceled, reason: None, release: true, error: None };
        let ending = Ending {
            row,
            above: Vec::new(),
            owner: &owner,
            epoch,
            events: Arc::from(events),
            after,
            watched: true,
        };
        ending.write(tx, end, desk).await.map_err(|e| match e {
            AppendError::Store(e) => Refused::Store(e),
            AppendError::Conflict { .. } | AppendError::Fenced { .. } | AppendError::Gone => {
                Refused::Store(StoreError::broken("a held run moved"))
            }
        })
    }
}

/// What a request brought to a run.
fn brought(set: &Toolset) -> Vec<&ToolSpec> {
    set.0.iter().filter(|spec| spec.brought.is_some()).collect()
}

fn nothing_new() -> ApiError {
    ApiError::new(ErrorCode::BadRequest, "messages: there is no new user message in it")
}

/// A request's choice on top of what the user picked in the space.
fn joined(seat: Option<Picks>, asked: Option<Picks>) -> Option<Picks> {
    let (Some(mut seat), Some(asked)) = (seat.clone(), asked.clone()) else { return seat.or(asked) };
    seat.tools.extend(asked.tools);
    seat.categories = asked.categories.or(seat.categories);
    Some(seat)
}

/// The run as its log says.
pub(super) async fn load(tx: &mut Tx<'_>, row: &RunRow) -> Result<Run, StoreError> {
    let mut run = Run::new(row.id.clone());
    let mut after = 0;
    loop {
        let page = log::read(tx, &row.tenant, &row.id, after, limits::LOG_PAGE).await?;
        let Some(last) = page.last() else { return Ok(run) };
        after = last.seq;
        page.iter().for_each(|logged| run.fold(&logged.event));
    }
}

/// Results that the gateway never saw may say anything.
fn is_tainted(items: &[&Item]) -> bool {
    items.iter().any(|item| item.parts.iter().any(|part| matches!(part, Part::ToolResult { .. })))
}

/// Stores the new items. An answer that the gateway did not give is foreign:
/// the agent reads it as its own, and it is marked.
async fn store_items(tx: &mut Tx<'_>, job: &Job<'_>, items: &[&Item]) -> Result<Vec<Message>, Refused> {
    let place = &job.place;
    let (tenant, space): (&TenantId, _) = (&job.turn.by.tenant, &place.space);
    let mut stored = Vec::with_capacity(items.len());
    for item in items {
        let foreign = item.speaker != Speaker::User;
        let entity = match item.speaker {
            Speaker::User => Some(place.owner.clone()),
            Speaker::Assistant => Some(place.agent_entity.clone()),
            Speaker::System => None,
        };
        let metadata = match (foreign, item.metadata.clone()) {
            (false, metadata) => metadata,
            (true, metadata) => Some(json!({ "foreign": true, "metadata": metadata })),
        };
        let new = NewMessage {
            id: MessageId::mint(),
            speaker: item.speaker,
            entity,
            run: None,
            branch: space.branch.clone(),
            parts: item.parts.clone(),
            show_reasoning: space.show_reasoning,
            metadata,
        };
        let message = messages::insert(tx, tenant, &space.id, new).await?;
        if let Some(name) = &item.name {
            threads::name_message(tx, tenant, &space.id, name, &message.id).await?;
        }
        stored.push(message);
    }
    Ok(stored)
}
