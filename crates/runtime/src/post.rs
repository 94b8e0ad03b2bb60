//! Messages into spaces, and the runs they start, feed or interrupt: one
//! transaction for all of it.
//!
//! Lock order: live runs first, then their waits, then the space.

use std::sync::Arc;

use toolyard_engine::facts;
use toolyard_protocol::event::{Event, MessageQueued, Trigger};
use toolyard_protocol::message::Message;
use toolyard_protocol::picks::Picks;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::run::{MessagePolicy, RunStatus};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{AgentName, ApiError, EntityId, ErrorCode, MessageId, Principal};
use toolyard_store::messages::{self, NewMessage};
use toolyard_store::runs::{self, RunRow};
use toolyard_store::spaces::{self, Positions, Space};
use toolyard_store::{Tx, failpoint, waits};

use crate::agents::{LoadedAgent, LoadedTools};
use crate::command::{Disposition, Fresh, Once, PostMessage, Posted, Triggered};
use crate::create::Birth;
use crate::facts::Held;
use crate::once;
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::{Desk, STARTS};

/// An agent of the space.
struct Listener {
    entity: EntityId,
    agent: Option<AgentName>,
    ear: Ear,
}

/// How an agent hears a message.
enum Ear {
    /// In its live run.
    Live(Box<RunRow>),
    /// In a new run, with the tools that the request brings.
    New(Arc<LoadedAgent>, Option<LoadedTools>),
    /// Not at all: it is gone.
    None,
}

impl Runtime {
    /// Stores a message and wakes the agents of the space.
    pub async fn post_message(
        self: &Arc<Self>,
        post: PostMessage,
        once: Option<Once<Posted>>,
    ) -> Result<Fresh<Posted>, ApiError> {
        self.check_model(post.model.as_deref())?;
        let (post, once) = (Arc::new(post), once.map(Arc::new));
        self.starting(STARTS, move |rt, mut desk| {
            let (post, once) = (post.clone(), once.clone());
            Box::new(move |tx| {
                Box::pin(async move {
                    if let Some(before) = once::begin(tx, once.as_deref()).await? {
                        return Ok((before, desk.starts));
                    }
                    let posted = rt.post(tx, &post, &mut desk).await?;
                    once::finish(tx, once.as_deref(), &posted).await?;
                    failpoint::pass("start.before_commit")?;
                    Ok((Fresh::Done(posted), desk.starts))
                })
            })
        })
        .await
    }

    async fn post(&self, tx: &mut Tx<'_>, post: &PostMessage, desk: &mut Desk) -> Result<Posted, Refused> {
        let tenant = &post.by.tenant;
        let (space, picks) = find_space(tx, post).await?;
        let listeners = if post.trigger_agents { self.listeners(tx, post).await? } else { Vec::new() };
        // Whoever is refused is refused by now. A live run may have others below it, whose
        // logs are read.
        if !listeners.iter().any(|listener| matches!(listener.ear, Ear::Live(_))) {
            tx.settle();
        }
        let new = NewMessage {
            id: MessageId::mint(),
            speaker: post.speaker,
            entity: post.sender.clone(),
            run: None,
            branch: space.branch.clone(),
            parts: post.parts.clone(),
            show_reasoning: space.show_reasoning,
            metadata: post.metadata.clone(),
        };
        // One run is the rule: it begins right behind the message.
        let alone = matches!(listeners.as_slice(), [Listener { ear: Ear::New(..), .. }]);
        let count = if alone { desk.first_events() } else { 0 };
        let (message, behind) = messages::insert_before(tx, tenant, &space.id, new, count).await?;
        let positions = alone.then_some(behind);
        let mut reached = Vec::with_capacity(listeners.len());
        for listener in listeners {
            let here = (&space, picks.as_ref(), positions);
            reached.push(self.deliver(tx, post, here, &message, listener, desk).await?);
        }
        Ok(Posted { message, runs: reached })
    }

    /// Brings a message to one agent: a new run, or the live one.
    async fn deliver(
        &self,
        tx: &mut Tx<'_>,
        post: &PostMessage,
        (space, picks, positions): (&Space, Option<&Picks>, Option<Positions>),
        message: &Message,
        listener: Listener,
        desk: &mut Desk,
    ) -> Result<Triggered, Refused> {
        let told = |run, disposition| Triggered {
            run,
            agent_entity: listener.entity.clone(),
            agent: listener.agent.clone(),
            disposition,
        };
        let (agent, tools) = match &listener.ear {
            Ear::Live(live) => {
                let word = Word {
                    by: &post.by,
                    sender: post.sender.as_ref(),
                    messages: std::slice::from_ref(&message.id),
                };
                let disposition = feed_live(tx, word, live, Vec::new(), desk).await?;
                return Ok(told(Some(live.id.clone()), disposition));
            }
            Ear::New(agent, tools) => (agent, tools),
            Ear::None => return Ok(told(None, Disposition::AgentMissing)),
        };
        let trigger = post
            .sender
            .as_ref()
            .map(|entity| Trigger { entity: entity.clone(), message: Some(message.id.clone()) });
        let birth = Birth {
            by: &post.by,
            space,
            agent_entity: &listener.entity,
            agent,
            triggered_by: post.sender.as_ref(),
            trigger,
            history_to: message.seq,
            metadata: None,
            model: post.model.as_deref(),
            picks: picks.cloned(),
            tools: tools.as_ref(),
            output: None,
            tainted: false,
            trace: post.trace.clone(),
            positions,
        };
        let (run, started) = self.give_birth(tx, birth, desk).await?;
        let disposition = if started { Disposition::Started } else { Disposition::Queued };
        Ok(told(Some(run), disposition))
    }

    /// The agents that hear a message, with their live runs held.
    async fn listeners(&self, tx: &mut Tx<'_>, post: &PostMessage) -> Result<Vec<Listener>, Refused> {
        let tenant = &post.by.tenant;
        let mut found = Vec::new();
        for (entity, agent) in spaces::agents_in(tx, tenant, &post.space).await? {
            // An agent does not hear itself.
            if post.sender.as_ref() == Some(&entity) {
                continue;
            }
            let ear = match runs::lock_live(tx, tenant, &post.space, &entity).await? {
                Some(live) => Ear::Live(Box::new(live)),
                None => self.new_ear(tx, post, agent.as_ref()).await?,
            };
            found.push(Listener { entity, agent, ear });
        }
        Ok(found)
    }

    async fn new_ear(
        &self,
        tx: &mut Tx<'_>,
        post: &PostMessage,
        name: Option<&AgentName>,
    ) -> Result<Ear, Refused> {
        let tenant = &post.by.tenant;
        let Some(agent) = self.current_agent(tx, tenant, name).await? else { return Ok(Ear::None) };
        let tools = match &post.client_tools {
            brought if brought.is_empty() => None,
            brought => Some(self.join_client_tools(tx, tenant, &agent, brought).await?),
        };
        Ok(Ear::New(agent, tools))
    }
}

/// The space, and which tools the sender wants there.
async fn find_space(tx: &mut Tx<'_>, post: &PostMessage) -> Result<(Space, Option<Picks>), Refused> {
    let tenant = &post.by.tenant;
    let space = spaces::get(tx, tenant, &post.space).await?;
    let space = space.ok_or_else(|| ApiError::not_found("SmartSpace"))?;
    let seat = match &post.sender {
        Some(sender) => spaces::seat(tx, tenant, &post.space, sender).await?,
        None => None,
    };
    if post.sender.is_some() && seat.is_none() {
        // Its seats go with a space: it may have been deleted since the first look.
        if spaces::get(tx, tenant, &post.space).await?.is_none() {
            return Err(ApiError::not_found("SmartSpace").into());
        }
        let text = "Entity is not a member of this SmartSpace";
        return Err(ApiError::new(ErrorCode::Forbidden, text).into());
    }
    let mut picks = seat.and_then(|seat| seat.picks);
    if let Some(categories) = &post.categories {
        picks.get_or_insert_default().categories = Some(categories.clone());
    }
    Ok((space, picks))
}

/// What somebody says to an agent.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    pub(crate) by: &'a Principal,
    pub(crate) sender: Option<&'a EntityId>,
    pub(crate) messages: &'a [MessageId],
}

/// Messages for an agent that is at work. `first` goes into the log before them.
pub(crate) async fn feed_live(
    tx: &mut Tx<'_>,
    word: Word<'_>,
    live: &RunRow,
    first: Vec<Event>,
    desk: &mut Desk,
) -> Result<Disposition, Refused> {
    let by = Actor::caller(word.by, None);
    let waits_for_someone = live.status == RunStatus::WaitingTool && live.owner.is_none();
    let foreign = word.sender.is_none() || word.sender != live.triggered_by.as_ref();
    let mut events = first;
    if waits_for_someone && !foreign {
        let open = waits::open_of_run(tx, &live.tenant, &live.id).await?;
        let open: Vec<_> = open.into_iter().map(|w| w.wait).collect();
        events.extend(facts::supersede(&open, word.messages.to_vec(), by));
        let kin = open.iter().any(|w| w.kind == WaitKind::Child);
        Held::root(live.clone()).append(tx, events, 0, kin, desk).await?;
        return Ok(Disposition::Superseded);
    }
    let (interrupt, disposition) = match live.on_message {
        MessagePolicy::Queue => (false, Disposition::Added),
        // There is nothing to interrupt in a run that lies on disk.
        MessagePolicy::Interrupt if live.owner.is_none() => (false, Disposition::Added),
        MessagePolicy::Interrupt => (true, Disposition::Interrupted),
        MessagePolicy::Reject => return Ok(Disposition::Rejected),
    };
    let queued =
        word.messages.iter().map(|message| MessageQueued { message: message.clone(), interrupt, foreign });
    events.extend(queued.map(Event::from));
    let open = waits::open_of_run(tx, &live.tenant, &live.id).await?.len();
    desk.wake(tx, live, events, open).await?;
    Ok(disposition)
}
