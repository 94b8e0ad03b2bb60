//! A tenant with one of everything, for stories about walls and deletions.

use serde_json::json;
use toolyard_protocol::principal::{KeyKind, Role};
use toolyard_protocol::tool::Toolset;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{
    AgentId, AgentName, CallId, ClientId, DocumentId, EntityId, FileId, GoalId, GrantId, Hash, KeyId,
    MemoryId, MessageId, NoticeId, PlanId, SpaceId, TenantId, Timestamp, WaitId,
};
use toolyard_store::blobs::{self, FileRow};
use toolyard_store::clients::{self, Client};
use toolyard_store::entities::{self, Entity, EntityKind};
use toolyard_store::grants::{self, GrantRow};
use toolyard_store::knowledge::{self, Chunk, DocumentStatus};
use toolyard_store::memories::{self, MemoryScope};
use toolyard_store::plans::{self, Plan};
use toolyard_store::{StoreError, Tx, agents, audit, goals, inbox, keys, messages, outbox, spaces};

use crate::cast::{self, owner};
use crate::home::{Home, START_MS, tx};
use crate::line::Line;
use crate::prebuilt;

/// A moment that no story reaches.
const FAR: Timestamp = Timestamp::from_millis(START_MS * 2);

/// An empty space of the stories' tenant.
pub(crate) async fn with_space(home: &Home) -> (TenantId, SpaceId) {
    let (tenant, space) = (cast::tenant(), SpaceId::mint());
    tx!(home, write, [tenant, space], |tx| spaces::insert(tx, &tenant, &cast::space(&space)).await);
    (tenant, space)
}

/// The names of what a tenant has.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) tenant: TenantId,
    pub(crate) space: SpaceId,
    pub(crate) entity: EntityId,
    pub(crate) external: String,
    pub(crate) message: MessageId,
    pub(crate) line: Line,
    pub(crate) wait: WaitId,
    pub(crate) key: KeyId,
    pub(crate) agent: AgentId,
    pub(crate) agent_name: AgentName,
    pub(crate) version: Hash,
    pub(crate) toolset: Hash,
    pub(crate) blob: Hash,
    pub(crate) file: FileId,
    pub(crate) grant: GrantId,
    pub(crate) parcel: String,
    pub(crate) goal: GoalId,
    pub(crate) memory: MemoryId,
    pub(crate) plan: PlanId,
    pub(crate) notice: NoticeId,
    pub(crate) document: DocumentId,
}

impl World {
    /// Makes a space with a member, a message and a waiting run that wrote
    /// one too, and everything that hangs on the tenant.
    pub(crate) async fn of(home: &Home, tenant: &TenantId) -> Self {
        let space = SpaceId::mint();
        let entity = Entity {
            id: EntityId::mint(),
            kind: EntityKind::Human,
            external_id: Some(space.as_str().to_owned()),
            display_name: None,
            agent: None,
            metadata: None,
            created_at: Timestamp::from_millis(START_MS),
        };
        let posted = talk(home, tenant, &space, &entity).await;
        let (line, call) = waiting(home, tenant, &space).await;
        let belongings = belong(home, tenant, &space, &entity.id).await;
        Self {
            tenant: tenant.clone(),
            entity: entity.id,
            external: space.as_str().to_owned(),
            message: posted,
            wait: WaitId::of(WaitKind::Client, &call, 0),
            line,
            key: belongings.key,
            agent: belongings.agent,
            agent_name: belongings.agent_name,
            version: belongings.version,
            toolset: Toolset::default().hash(),
            blob: belongings.blob,
            file: belongings.file,
            grant: belongings.grant,
            goal: belongings.goal,
            memory: belongings.memory,
            plan: belongings.plan,
            notice: belongings.notice,
            document: belongings.document,
            parcel: format!("parcel-{space}"),
            space,
        }
    }
}

async fn talk(home: &Home, tenant: &TenantId, space: &SpaceId, entity: &Entity) -> MessageId {
    let (tenant, space, entity) = (tenant.clone(), space.clone(), entity.clone());
    home.write(move |tx| {
        Box::pin(async move {
            spaces::insert(tx, &tenant, &cast::space(&space)).await?;
            entities::insert(tx, &tenant, &entity).await?;
            spaces::put_member(tx, &tenant, &space, &entity.id, Role::Admin).await?;
            let robot =
                Entity { id: EntityId::mint(), kind: EntityKind::Agent, external_id: None, ..entity.clone() };
            entities::insert(tx, &tenant, &robot).await?;
            spaces::put_member(tx, &tenant, &space, &robot.id, Role::Member).await?;
            let mut hello = cast::message("hello");
            hello.entity = Some(entity.id);
            Ok(messages::insert(tx, &tenant, &space, hello).await?.id)
        })
    })
    .await
}

async fn waiting(home: &Home, tenant: &TenantId, space: &SpaceId) -> (Line, CallId) {
    let (node, call) = (owner("a"), CallId::mint());
    let line = Line::begun(home, cast::new_run(tenant, Some(space)), Some(&node)).await;
    let events = vec![cast::created(&line.run), cast::client_call(&call), cast::paused(&call)];
    line.append(&node, 1, 0, events, cast::parked()).await.unwrap();
    let (tenant, space, run) = (tenant.clone(), space.clone(), line.run.id.clone());
    home.write(move |tx| {
        Box::pin(async move {
            let mut turn = cast::message("Let me look.");
            turn.id = MessageId::of_turn(&run, 0);
            turn.run = Some(run);
            messages::insert(tx, &tenant, &space, turn).await.map(drop)
        })
    })
    .await;
    (line, call)
}

struct Belongings {
    key: KeyId,
    agent: AgentId,
    agent_name: AgentName,
    version: Hash,
    blob: Hash,
    file: FileId,
    grant: GrantId,
    goal: GoalId,
    memory: MemoryId,
    plan: PlanId,
    notice: NoticeId,
    document: DocumentId,
}

async fn belong(home: &Home, tenant: &TenantId, space: &SpaceId, entity: &EntityId) -> Belongings {
    let (tenant, space, entity) = (tenant.clone(), space.clone(), entity.clone());
    home.write(move |tx| Box::pin(async move { store_all(tx, &tenant, &space, &entity).await })).await
}

async fn store_all(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    entity: &EntityId,
) -> Result<Belongings, StoreError> {
    let at = Timestamp::from_millis(START_MS);
    let hash = Hash::of(space.as_str().as_bytes());
    let key = keys::insert(tx, tenant, KeyKind::Secret, &hash, "a label").await?;
    let agent_name = AgentName::parse(&format!("agent.{}", &space.as_str()[4..])).unwrap();
    let config = json!({ "of": space });
    let (agent, _) = agents::upsert(tx, tenant, &agent_name, &config).await?;
    let toolset = Toolset::default();
    agents::put_toolset(tx, tenant, &toolset.hash(), &toolset).await?;
    blobs::put(tx, tenant, &hash, space.as_str().as_bytes()).await?;
    let file = FileRow {
        id: FileId::mint(),
        hash: hash.clone(),
        media_type: "text/plain".to_owned(),
        name: Some("a.txt".to_owned()),
        bytes: 36,
        entity: Some(entity.clone()),
        run: None,
        created_at: at,
    };
    blobs::put_file(tx, tenant, &file).await?;
    let grant = GrantRow {
        id: GrantId::mint(),
        entity: Some(entity.clone()),
        tool: "get_location".to_owned(),
        body: json!({ "allow": true }),
        created_at: at,
        expires_at: None,
    };
    grants::insert(tx, tenant, &grant).await?;
    let client = Client {
        id: ClientId::mint(),
        entity: Some(entity.clone()),
        kind: "browser".to_owned(),
        name: None,
        capabilities: None,
        last_seen: at,
    };
    assert!(clients::put(tx, tenant, &client).await?);
    outbox::put(tx, tenant, &format!("parcel-{space}"), "mail", &json!({})).await?;
    audit::write(tx, tenant, "key_1", "space.create", space.as_str(), None).await?;
    let agent_entity = EntityId::mint();
    let goal = prebuilt::goal(entity, 3, 0);
    goals::insert(tx, tenant, &goal).await?;
    let memory = prebuilt::memory(&agent_entity, Some(entity), Some(space), MemoryScope::Space);
    memories::insert(tx, tenant, &memory).await?;
    let plan = Plan { space: Some(space.clone()), ..prebuilt::plan(tenant, &agent_entity, entity, FAR) };
    plans::insert(tx, &plan).await?;
    let notice = prebuilt::notice(entity);
    inbox::put(tx, tenant, &notice).await?;
    let document = prebuilt::document(Some(space), "words");
    knowledge::insert(tx, tenant, &document, "words").await?;
    let chunk = Chunk { start: 0, end: 5, text: "words".to_owned() };
    knowledge::add_chunks(tx, tenant, &document, &[chunk], 5, DocumentStatus::Ready).await?;
    Ok(Belongings {
        goal: goal.id,
        memory: memory.id,
        plan: plan.id,
        notice: notice.id,
        document: document.id,
        key: key.id,
        agent: agent.id,
        agent_name,
        version: agent.hash,
        blob: hash,
        file: file.id,
        grant: grant.id,
    })
}

/// How many rows each table has: what a story adds and removes shows here.
pub(crate) async fn census(home: &Home) -> Vec<(&'static str, i64)> {
    macro_rules! count {
        ($($table:literal),*) => {
            home.read(|tx| Box::pin(async move {
                Ok(vec![$((
                    $table,
                    tx.one(concat!("SELECT count(*) FROM ", $table), &[], |r| r.int(0))
                        .await?
                        .unwrap(),
                )),*])
            }))
            .await
        };
    }
    count!(
        "tenants",
        "keys",
        "entities",
        "spaces",
        "members",
        "messages",
        "branches",
        "message_names",
        "agents",
        "agent_versions",
        "toolsets",
        "runs",
        "events",
        "waits",
        "nodes",
        "outbox",
        "push_configs",
        "idempotency",
        "blobs",
        "blob_uses",
        "files",
        "grants",
        "clients",
        "audit",
        "goals",
        "memories",
        "plans",
        "inbox",
        "documents",
        "document_texts",
        "chunks"
    )
}
