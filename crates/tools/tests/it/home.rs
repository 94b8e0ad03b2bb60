//! A database with two agents, three people and two spaces, and calls of
//! prebuilt tools in it.

use std::sync::Arc;

use serde_json::Value;
use toolyard_protocol::agent::execution::{Channel, Prebuilt};
use toolyard_protocol::principal::Role;
use toolyard_protocol::tool::Toolset;
use toolyard_protocol::{AgentName, BranchId, CallId, EntityId, RunId, SpaceId, TenantId, Timestamp};
use toolyard_store::entities::{self, Entity, EntityKind};
use toolyard_store::spaces::{self, Space};
use toolyard_store::{ManualClock, Settings, Store, StoreError, Tx};
use toolyard_tools::knowledge::{Embedder, Knowledge, Worked};
use toolyard_tools::prebuilt::{self, Given, Refused, Way};
use toolyard_tools::{CallContext, Resumed, Toolbox};

/// A Friday morning.
pub(crate) const START_MS: i64 = 1_800_000_000_000;

pub(crate) struct Home {
    pub(crate) store: Arc<Store>,
    pub(crate) tenant: TenantId,
    /// A member of `den` and `hall`, as Ann.
    pub(crate) bot: EntityId,
    /// A member of `den`.
    pub(crate) other_bot: EntityId,
    pub(crate) ann: EntityId,
    /// A member of `den` alone.
    pub(crate) bob: EntityId,
    /// A member of nothing.
    pub(crate) eve: EntityId,
    pub(crate) den: SpaceId,
    pub(crate) hall: SpaceId,
    toolbox: Toolbox,
    knowledge: Arc<Knowledge>,
    _folder: tempfile::TempDir,
}

impl Home {
    pub(crate) async fn new() -> Self {
        Self::with(None).await
    }

    pub(crate) async fn with(embedder: Option<Embedder>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(START_MS));
        let settings = Settings::Sqlite { folder: folder.path().to_owned() };
        let store = Arc::new(Store::open_with_clock(&settings, clock).await.unwrap());
        let tenant = TenantId::parse("acme").unwrap();
        let [bot, other_bot, ann, bob, eve] = std::array::from_fn(|_| EntityId::mint());
        let [den, hall] = std::array::from_fn(|_| SpaceId::mint());
        let people = [&bot, &other_bot, &ann, &bob, &eve].map(Clone::clone);
        let seats = [(&den, vec![&bot, &other_bot, &ann, &bob]), (&hall, vec![&bot, &ann])]
            .map(|(space, members)| (space.clone(), members.into_iter().cloned().collect::<Vec<_>>()));
        let t = tenant.clone();
        let made = store.write(move |tx| Box::pin(async move { furnish(tx, &t, &people, &seats).await }));
        made.await.unwrap();
        let knowledge = Arc::new(Knowledge::new(store.clone(), embedder));
        let toolbox = Toolbox::default().with_knowledge(knowledge.clone());
        Self { store, tenant, bot, other_bot, ann, bob, eve, den, hall, toolbox, knowledge, _folder: folder }
    }

    /// A call of the bot, for somebody, somewhere.
    pub(crate) fn call_for(&self, user: Option<&EntityId>, space: Option<&SpaceId>) -> CallContext {
        CallContext {
            tenant: self.tenant.clone(),
            run: RunId::mint(),
            space: space.cloned(),
            agent_entity: Some(self.bot.clone()),
            agent: AgentName::parse("bot").unwrap(),
            trigger: user.cloned(),
            trace: None,
            call: CallId::mint(),
        }
    }

    /// The bot works for Ann in the den.
    pub(crate) fn anns(&self) -> CallContext {
        self.call_for(Some(&self.ann), Some(&self.den))
    }

    /// What a call answers, or what the model hears instead.
    pub(crate) async fn act(&self, caller: &CallContext, action: &str, args: Value) -> Result<Value, String> {
        let action = prebuilt::find(action).unwrap();
        match action.way {
            Way::Act(act) => {
                let channels = Some(vec![Channel::Inbox, Channel::Email, Channel::Webhook]);
                let options = Prebuilt { action: action.name.to_owned(), channels };
                let (given, caller) = (Given { args: Arc::new(args), options }, caller.clone());
                let done =
                    self.store.write(move |tx| Box::pin(async move { act(tx, &caller, &given).await })).await;
                done.map_err(|e: Refused| match e {
                    Refused::TellModel(text) => text,
                    Refused::Store(e) => panic!("{e}"),
                })
            }
            Way::Read => {
                let mut set = Toolset::default();
                prebuilt::add_all(&mut set).unwrap();
                let spec = set.find(action.name).unwrap();
                let done = self.toolbox.execute(spec, &args, caller, &[], Resumed::default()).await;
                done.map_err(|failure| failure.to_string())
            }
            Way::AskUser => panic!("nobody answers here"),
        }
    }

    /// Works until everything is indexed.
    pub(crate) async fn index(&self) {
        while self.knowledge.work().await.unwrap() == Worked::Some {}
    }

    /// One slice. False if nothing was left.
    pub(crate) async fn work(&self) -> bool {
        self.knowledge.work().await.unwrap() == Worked::Some
    }

    pub(crate) async fn write<T, F>(&self, op: F) -> T
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> futures::future::BoxFuture<'t, Result<T, StoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
        self.store.write(op).await.unwrap()
    }
}

async fn furnish(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    people: &[EntityId],
    seats: &[(SpaceId, Vec<EntityId>)],
) -> Result<(), StoreError> {
    let created_at = Timestamp::from_millis(START_MS);
    for (i, id) in people.iter().enumerate() {
        let entity = Entity {
            id: id.clone(),
            kind: if i < 2 { EntityKind::Agent } else { EntityKind::Human },
            external_id: None,
            display_name: Some(format!("number {i}")),
            agent: None,
            metadata: Some(serde_json::json!({"email": format!("n{i}@example.org")})),
            created_at,
        };
        entities::insert(tx, tenant, &entity).await?;
    }
    for (id, members) in seats {
        let space = Space {
            id: id.clone(),
            name: Some("Room".to_owned()),
            description: None,
            metadata: Some(serde_json::json!({"colour": "blue"})),
            show_reasoning: false,
            last_pos: 0,
            branch: BranchId::main(),
            tainted: false,
            created_at,
        };
        spaces::insert(tx, tenant, &space).await?;
        for member in members {
            spaces::put_member(tx, tenant, id, member, Role::Member).await?;
        }
    }
    Ok(())
}
