//! Where a turn happens: the space, who speaks, and the agent that answers.

use std::sync::Arc;

use toolyard_protocol::principal::{Actor, Role};
use toolyard_protocol::{
    AgentName, ApiError, BranchId, EntityId, ErrorCode, KeyKind, Principal, SpaceId, TenantId, Viewer, limits,
};
use toolyard_store::entities::{self, Entity, EntityKind};
use toolyard_store::spaces::{self, Space};
use toolyard_store::{StoreError, Tx, threads};

use super::Turn;
use crate::agents::LoadedAgent;
use crate::facts::Caller;
use crate::refused::Refused;
use crate::runtime::Runtime;

/// A conversation and its two sides.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) space: Space,
    /// Who speaks.
    pub(super) owner: EntityId,
    pub(super) agent_entity: EntityId,
    pub(super) agent: Arc<LoadedAgent>,
    pub(super) caller: Caller,
}

/// A space by a client's name, and whether it is the caller's own thread.
pub(super) struct Thread {
    pub(super) space: Space,
    pub(super) own: bool,
    pub(super) owner: EntityId,
    pub(super) viewer: Viewer,
}

impl Runtime {
    pub(super) async fn find_place(&self, tx: &mut Tx<'_>, turn: &Turn) -> Result<Place, Refused> {
        let tenant = &turn.by.tenant;
        check_name(&turn.thread)?;
        let thread = match find_thread(tx, &turn.by, &turn.thread).await? {
            Some(thread) => thread,
            None => make_thread(tx, &turn.by, &turn.thread).await?,
        };
        let (agent_entity, name) = agent_of(tx, turn, &thread).await?;
        let agent = self.current_agent(tx, tenant, Some(&name)).await?;
        let agent =
            agent.ok_or_else(|| ApiError::new(ErrorCode::NotFound, format!("Agent {name} not found")))?;
        let Thread { space, owner, viewer, .. } = thread;
        let acting = Principal { entity: Some(owner.clone()), ..turn.by.clone() };
        let caller = Caller { tenant: tenant.clone(), viewer, actor: Actor::caller(&acting, None) };
        Ok(Place { space, owner, agent_entity, agent, caller })
    }
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let (chars, most) = (name.chars().count(), limits::LABEL_CHARS);
    if chars == 0 {
        return Err(ApiError::missing("id"));
    }
    if chars > most {
        let text = format!("The id of a conversation has {chars} characters: the limit is {most}");
        return Err(ApiError::limit(ErrorCode::LimitExceeded, u64::try_from(most).unwrap_or(0), text));
    }
    Ok(())
}

/// Who speaks: the token's user, or for a backend the tenant's own entity. Its
/// id is fixed and no external id leads to it, so no token can be it.
async fn speaker(tx: &mut Tx<'_>, by: &Principal, make: bool) -> Result<Option<EntityId>, Refused> {
    match (&by.entity, by.kind) {
        (Some(entity), KeyKind::Public) => Ok(Some(entity.clone())),
        (Some(entity), KeyKind::Secret) => {
            let found = entities::get(tx, &by.tenant, entity).await?;
            Ok(Some(found.ok_or_else(|| ApiError::not_found("Entity"))?.id))
        }
        (None, KeyKind::Public) => {
            Err(ApiError::new(ErrorCode::Forbidden, "No entity found for this user").into())
        }
        (None, KeyKind::Secret) => {
            let id = fixed("ent_backend")?;
            if make {
                ensure(tx, &by.tenant, &id, EntityKind::System, "Backend", None).await?;
            }
            Ok(Some(id))
        }
    }
}

fn fixed(text: &str) -> Result<EntityId, StoreError> {
    EntityId::parse(text).map_err(|e| StoreError::broken(e.to_string()))
}

async fn ensure(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &EntityId,
    kind: EntityKind,
    display_name: &str,
    agent: Option<AgentName>,
) -> Result<(), StoreError> {
    if entities::get(tx, tenant, id).await?.is_some() {
        return Ok(());
    }
    let entity = Entity {
        id: id.clone(),
        kind,
        external_id: None,
        display_name: Some(display_name.to_owned()),
        agent,
        metadata: None,
        created_at: tx.now().await?,
    };
    entities::insert(tx, tenant, &entity).await
}

/// A space that the caller knows by this name: a space's own id if they have a
/// seat there, else their thread of that name.
pub(super) async fn find_thread(
    tx: &mut Tx<'_>,
    by: &Principal,
    name: &str,
) -> Result<Option<Thread>, Refused> {
    let tenant = &by.tenant;
    let Some(owner) = speaker(tx, by, false).await? else { return Ok(None) };
    if let Ok(id) = SpaceId::parse(name)
        && let Some(space) = spaces::get(tx, tenant, &id).await?
        && let Some(viewer) = viewer(tx, by, &id).await?
    {
        return Ok(Some(Thread { space, own: false, owner, viewer }));
    }
    let Some(space) = threads::find(tx, tenant, &owner, name).await? else { return Ok(None) };
    let seen = viewer(tx, by, &space.id).await?;
    let text = "Entity is not a member of this SmartSpace";
    let viewer = seen.ok_or_else(|| ApiError::new(ErrorCode::Forbidden, text))?;
    Ok(Some(Thread { space, own: true, owner, viewer }))
}

async fn viewer(tx: &mut Tx<'_>, by: &Principal, space: &SpaceId) -> Result<Option<Viewer>, StoreError> {
    match (by.kind, &by.entity) {
        (KeyKind::Secret, _) => Ok(Some(Viewer::secret())),
        (KeyKind::Public, None) => Ok(None),
        (KeyKind::Public, Some(entity)) => {
            let role = spaces::role(tx, &by.tenant, space, entity).await?;
            Ok(role.map(|role| Viewer::public(entity.clone(), role)))
        }
    }
}

async fn make_thread(tx: &mut Tx<'_>, by: &Principal, name: &str) -> Result<Thread, Refused> {
    let missing = || ApiError::new(ErrorCode::Forbidden, "No entity found for this user");
    let owner = speaker(tx, by, true).await?.ok_or_else(missing)?;
    let space = Space {
        id: SpaceId::mint(),
        name: None,
        description: None,
        metadata: None,
        show_reasoning: false,
        last_pos: 0,
        branch: BranchId::main(),
        tainted: false,
        created_at: tx.now().await?,
    };
    threads::insert(tx, &by.tenant, &owner, name, &space).await?;
    spaces::put_member(tx, &by.tenant, &space.id, &owner, Role::Member).await?;
    let viewer = match by.kind {
        KeyKind::Secret => Viewer::secret(),
        KeyKind::Public => Viewer::public(owner.clone(), Role::Member),
    };
    Ok(Thread { space, own: true, owner, viewer })
}

/// The agent's entity in this space. Into one's own thread any agent can be
/// asked; into other spaces only who manages them brings one.
async fn agent_of(tx: &mut Tx<'_>, turn: &Turn, thread: &Thread) -> Result<(EntityId, AgentName), Refused> {
    let tenant = &turn.by.tenant;
    let there = spaces::agents_in(tx, tenant, &thread.space.id).await?;
    let there: Vec<(EntityId, AgentName)> =
        there.into_iter().filter_map(|(entity, agent)| Some((entity, agent?))).collect();
    let wanted = match (&turn.agent, there.as_slice()) {
        (Some(agent), _) => agent,
        (None, [(_, only)]) => only,
        (None, _) => &turn.default_agent,
    };
    if let Some(found) = there.iter().find(|(_, agent)| agent == wanted) {
        return Ok(found.clone());
    }
    if turn.agent.is_none()
        && !thread.own
        && let Some(first) = there.first()
    {
        return Ok(first.clone());
    }
    if !thread.own {
        let text = format!("Agent {wanted} is not a member of this SmartSpace");
        return Err(ApiError::new(ErrorCode::Forbidden, text).into());
    }
    let entity = fixed(&format!("ent_agent_{wanted}"))?;
    ensure(tx, tenant, &entity, EntityKind::Agent, wanted.as_str(), Some(wanted.clone())).await?;
    spaces::put_member(tx, tenant, &thread.space.id, &entity, Role::Member).await?;
    Ok((entity, wanted.clone()))
}
