//! New runs: all that a run depends on is pinned when it is created.

use std::sync::Arc;

use serde_json::Value;
use toolyard_models::{Registry, Wanted, direct};
use toolyard_protocol::agent::OutputSection;
use toolyard_protocol::event::{Event, RunCreated, RunStarted, Trigger};
use toolyard_protocol::picks::Picks;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::{
    AgentName, ApiError, EntityId, ErrorCode, Guarded, Principal, RunId, TenantId, TraceParent,
};
use toolyard_store::entities::{self, EntityKind};
use toolyard_store::log;
use toolyard_store::runs::{self, NewRun};
use toolyard_store::spaces::{self, Positions, Space};
use toolyard_store::{Commit, StoreError, Tx, agents, failpoint};

use crate::agents::{Found, LoadedAgent, LoadedTools};
use crate::command::{CreateRun, Fresh, Once};
use crate::once;
use crate::refused::Refused;
use crate::runtime::{Runtime, Start, Tail};
use crate::starting::Desk;

/// What a new run is made of.
pub(crate) struct Birth<'a> {
    pub(crate) by: &'a Principal,
    pub(crate) space: &'a Space,
    pub(crate) agent_entity: &'a EntityId,
    pub(crate) agent: &'a LoadedAgent,
    pub(crate) triggered_by: Option<&'a EntityId>,
    pub(crate) trigger: Option<Trigger>,
    pub(crate) history_to: i64,
    pub(crate) metadata: Option<Value>,
    pub(crate) model: Option<&'a str>,
    pub(crate) picks: Option<Picks>,
    /// The form of the answer, instead of the agent's own.
    pub(crate) output: Option<OutputSection>,
    /// The agent's tools and those that the request brings.
    pub(crate) tools: Option<&'a LoadedTools>,
    /// It begins with words from outside the gateway's trust.
    pub(crate) tainted: bool,
    /// The caller's span that it works for.
    pub(crate) trace: Option<TraceParent>,
    /// Positions of the space that were taken for its first events.
    pub(crate) positions: Option<Positions>,
}

/// A run as `POST /api/runs` answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedRun {
    pub run: RunId,
    /// False if it waits for a free slot.
    pub started: bool,
}

/// Whether an agent's model, and those that take over, are there.
pub fn check_model(registry: &Registry, agent: &LoadedAgent) -> Result<(), ApiError> {
    let refused = |path: &str, why: String| {
        ApiError::new(ErrorCode::InvalidConfig, format!("Invalid agent config: {path}: {why}"))
    };
    let wanted = agent.model();
    if is_direct(wanted.provider) || is_direct(Some(wanted.name)) {
        return Err(refused("model", "there is no such model".to_owned()));
    }
    let chain = registry.chain(&wanted).map_err(|e| refused("model", e.to_string()))?;
    for name in wanted.fallback {
        registry.knows(name).map_err(|e| refused("model.fallback", e.to_string()))?;
    }
    let priced = chain.first().is_some_and(|first| first.record.price.is_some());
    if agent.needs_price() && !priced {
        let why =
            "maxCostUsd needs a price of the model: add it under [models] of the gateway's configuration";
        return Err(refused("budget", why.to_owned()));
    }
    agent.children.iter().try_for_each(|child| check_model(registry, child))
}

/// Who answers: the entity that is named, or the one that plays the agent in
/// the space.
async fn agent_entity(tx: &mut Tx<'_>, create: &CreateRun) -> Result<EntityId, Refused> {
    let tenant = &create.by.tenant;
    let asked = match (&create.agent_entity, &create.agent) {
        (Some(entity), _) => return Ok(entity.clone()),
        (None, Some(asked)) => asked,
        (None, None) => return Err(ApiError::missing("agentEntityId").into()),
    };
    let agent = agents::named(tx, tenant, asked).await?.ok_or_else(|| ApiError::not_found("Agent"))?;
    let seated = spaces::agents_in(tx, tenant, &create.space).await?;
    let mut playing = seated.into_iter().filter(|(_, plays)| plays.as_ref() == Some(&agent.name));
    let refused = |code, text: &str| Refused::from(ApiError::new(code, text));
    match (playing.next(), playing.next()) {
        (Some((entity, _)), None) => Ok(entity),
        (None, _) => Err(refused(ErrorCode::Forbidden, "Agent is not a member of this SmartSpace")),
        (Some(_), Some(_)) => {
            let text = "agentId: several entities play this agent here. Name one with agentEntityId";
            Err(refused(ErrorCode::BadRequest, text))
        }
    }
}

/// The model that obeys whoever speaks to it: only the gateway's own routes use it.
fn is_direct(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with(direct::PROVIDER))
}

impl Runtime {
    /// Starts a run on what the space already says.
    pub async fn create_run(
        self: &Arc<Self>,
        create: CreateRun,
        once: Option<Once<CreatedRun>>,
    ) -> Result<Fresh<CreatedRun>, ApiError> {
        self.check_model(create.model.as_deref())?;
        let (create, once) = (Arc::new(create), once.map(Arc::new));
        self.starting(1, move |rt, mut desk| {
            let (create, once) = (create.clone(), once.clone());
            Box::new(move |tx| {
                Box::pin(async move {
                    if let Some(before) = once::begin(tx, once.as_deref()).await? {
                        return Ok((before, desk.starts));
                    }
                    let created = rt.create(tx, &create, &mut desk).await?;
                    once::finish(tx, once.as_deref(), &created).await?;
                    failpoint::pass("start.before_commit")?;
                    Ok((Fresh::Done(created), desk.starts))
                })
            })
        })
        .await
    }

    async fn create(
        &self,
        tx: &mut Tx<'_>,
        create: &CreateRun,
        desk: &mut Desk,
    ) -> Result<CreatedRun, Refused> {
        let tenant = &create.by.tenant;
        if spaces::get(tx, tenant, &create.space).await?.is_none() {
            return Err(ApiError::not_found("SmartSpace").into());
        }
        let agent_entity = &agent_entity(tx, create).await?;
        let entity = entities::get(tx, tenant, agent_entity).await?;
        let entity = entity
            .filter(|e| e.kind == EntityKind::Agent)
            .ok_or_else(|| ApiError::not_found("Agent entity"))?;
        let mut picks = None;
        for member in [Some(agent_entity), create.triggered_by.as_ref()].into_iter().flatten() {
            let Some(seat) = spaces::seat(tx, tenant, &create.space, member).await? else {
                let text = "Entity is not a member of this SmartSpace";
                return Err(ApiError::new(ErrorCode::Forbidden, text).into());
            };
            picks = seat.picks;
        }
        if let Some(asked) = &create.agent {
            let meant = agents::named(tx, tenant, asked).await?;
            let meant = meant.ok_or_else(|| ApiError::not_found("Agent"))?;
            if entity.agent.as_ref() != Some(&meant.name) {
                let text = "agentId: the entity of agentEntityId plays another agent";
                return Err(ApiError::new(ErrorCode::BadRequest, text).into());
            }
        }
        // Runs before their space, as everybody locks.
        if let Some(live) = runs::lock_live(tx, tenant, &create.space, agent_entity).await? {
            let text = format!("This agent has a live run in this space: {}", live.id);
            return Err(ApiError::new(ErrorCode::RunBusy, text).into());
        }
        // Held, the space takes no message that this run would not know of.
        let held = spaces::lock(tx, tenant, &create.space).await?;
        let space = if held { spaces::get(tx, tenant, &create.space).await? } else { None };
        let space = space.ok_or_else(|| ApiError::not_found("SmartSpace"))?;
        let agent = self.current_agent(tx, tenant, entity.agent.as_ref()).await?;
        let agent = agent.ok_or_else(|| ApiError::not_found("Agent"))?;
        let birth = Birth {
            by: &create.by,
            space: &space,
            agent_entity,
            agent: &agent,
            triggered_by: create.triggered_by.as_ref(),
            trigger: create.triggered_by.clone().map(|entity| Trigger { entity, message: None }),
            history_to: space.last_pos,
            metadata: create.metadata.clone(),
            model: create.model.as_deref(),
            picks,
            output: None,
            tools: None,
            tainted: false,
            trace: create.trace.clone(),
            positions: None,
        };
        let (run, started) = self.give_birth(tx, birth, desk).await?;
        Ok(CreatedRun { run, started })
    }

    /// A model that nobody knows is refused with its name, before anything is stored.
    pub(crate) fn check_model(&self, name: Option<&str>) -> Result<(), ApiError> {
        let Some(name) = name else { return Ok(()) };
        if is_direct(Some(name)) {
            let text = format!("There is no model {name:?}");
            return Err(ApiError::new(ErrorCode::ModelNotFound, text));
        }
        let found = self.registry.chain(&Wanted::named(name));
        found.map(drop).map_err(|e| ApiError::new(e.code(), e.to_string()))
    }

    /// An agent whose model no provider here has would fail in its first run.
    pub fn check_agents_model(&self, agent: &LoadedAgent) -> Result<(), ApiError> {
        check_model(&self.registry, agent)
    }

    /// The newest version of an agent, by its name.
    pub async fn agent_named(
        self: &Arc<Self>,
        tenant: &TenantId,
        name: &AgentName,
    ) -> Result<Option<Arc<LoadedAgent>>, ApiError> {
        let (rt, tenant, name) = (self.clone(), tenant.clone(), name.clone());
        let found = self
            .store
            .read(move |tx| Box::pin(async move { rt.current_agent(tx, &tenant, Some(&name)).await }));
        Ok(found.await?)
    }

    /// The agent's newest version.
    pub(crate) async fn current_agent(
        &self,
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        name: Option<&AgentName>,
    ) -> Result<Option<Arc<LoadedAgent>>, Refused> {
        let Some(name) = name else { return Ok(None) };
        let Some(agent) = agents::by_name(tx, tenant, name).await? else { return Ok(None) };
        match self.agents.load(tx, tenant, &agent.hash).await? {
            Found::Agent(agent) => Ok(Some(agent)),
            Found::Nothing => Ok(None),
            Found::Unusable(why) => {
                let text = format!("Agent {name} cannot run on this release. {why}");
                Err(ApiError::new(ErrorCode::InvalidConfig, text).into())
            }
        }
    }

    /// Writes a run's row and first events. True if it starts on this node now.
    pub(crate) async fn give_birth(
        &self,
        tx: &mut Tx<'_>,
        birth: Birth<'_>,
        desk: &mut Desk,
    ) -> Result<(RunId, bool), StoreError> {
        let run = RunId::mint();
        let config = &birth.agent.config;
        let toolset = match birth.tools {
            Some(tools) => {
                agents::put_toolset(tx, &birth.by.tenant, &tools.hash, &tools.set).await?;
                tools.hash.clone()
            }
            None => birth.agent.tools.hash.clone(),
        };
        let new = NewRun {
            tenant: birth.by.tenant.clone(),
            id: run.clone(),
            space: Some(birth.space.id.clone()),
            agent_entity: Some(birth.agent_entity.clone()),
            agent: config.agent.name.clone(),
            agent_hash: birth.agent.hash.clone(),
            root: run.clone(),
            parent: None,
            triggered_by: birth.triggered_by.cloned(),
            depth: 0,
            on_message: config.loop_.on_message,
        };
        let created = RunCreated {
            agent: config.agent.name.clone(),
            agent_version: Guarded::Shown(birth.agent.hash.clone()),
            toolset: Guarded::Shown(toolset),
            space: new.space.clone(),
            agent_entity: new.agent_entity.clone(),
            trigger: birth.trigger,
            branch: birth.space.branch.clone(),
            history_to: birth.history_to,
            parent: None,
            root: run.clone(),
            depth: 0,
            show_reasoning: birth.space.show_reasoning,
            limits: Guarded::Shown(birth.agent.limits(&self.settings.limits)),
            on_message: Guarded::Shown(config.loop_.on_message),
            answerers: Guarded::Shown(config.permissions.answerers.unwrap_or_default()),
            by: Guarded::Shown(Actor::caller(birth.by, None)),
            metadata: birth.metadata.map_or(Guarded::Hidden, Guarded::Shown),
            model: birth.model.map_or(Guarded::Hidden, |name| Guarded::Shown(name.to_owned())),
            errand: Guarded::Hidden,
            // What earlier runs read here, this one reads too.
            tainted: birth.tainted || birth.space.tainted,
            picks: birth.picks.filter(|p| !p.takes_all()).map_or(Guarded::Hidden, Guarded::Shown),
            output: birth.output.map_or(Guarded::Hidden, Guarded::Shown),
            replayed: None,
            trace: birth.trace.map_or(Guarded::Hidden, Guarded::Shown),
        };
        let started = self.bear(tx, &new, created, Vec::new(), birth.positions, desk).await?;
        Ok((run, started))
    }

    /// Writes the row and the first events: its birth, and what it has done
    /// already if it goes on with what another run did. True if it starts on
    /// this node now.
    pub(crate) async fn bear(
        &self,
        tx: &mut Tx<'_>,
        new: &NewRun,
        created: RunCreated,
        done: Vec<Event>,
        positions: Option<Positions>,
        desk: &mut Desk,
    ) -> Result<bool, StoreError> {
        let owner = desk.owner();
        let earlier = match &owner {
            Some(_) => desk.earlier(tx, &new.tenant, Some(&created)).await?,
            None => None,
        };
        let mut events = vec![Event::from(created)];
        if owner.is_some() || !done.is_empty() {
            events.push(RunStarted {}.into());
        }
        events.extend(done);
        let events: Arc<[Event]> = events.into();
        // Before the commit: no fact that follows it is missed.
        let watch = owner.is_some().then(|| self.store.feed().watch_run(&new.id));
        let row = log::begin(tx, new, owner.as_ref(), &events, positions).await?;
        let started = watch.is_some();
        desk.place(watch.map(|watch| {
            let commit = Commit { epoch: row.epoch, after: 0, at: row.created_at, events };
            Start {
                tenant: new.tenant.clone(),
                run: new.id.clone(),
                epoch: row.epoch,
                tail: Some(Tail { commit, watch, earlier }),
                recovered: false,
            }
        }));
        Ok(started)
    }
}
