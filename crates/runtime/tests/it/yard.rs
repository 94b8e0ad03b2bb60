//! A small gateway without HTTP: one store, one runtime, one agent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_models::demo::Demo;
use toolyard_models::scripted::Upstream;
use toolyard_models::{ProviderKind, ProviderSettings, Providers, Registry};
use toolyard_protocol::event::Event;
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::principal::{Actor, Principal, Role, Viewer};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{
    AgentName, ApiError, BranchId, CallId, EntityId, KeyId, KeyKind, NodeId, RunId, SpaceId, TenantId,
    ToolOutcome,
};
use toolyard_runtime::{
    Caller, Disposition, Fresh, PostMessage, Posted, ResultIn, Runtime, Settings, Submitted, Toolbox,
    check_agent,
};
use toolyard_store::entities::{Entity, EntityKind};
use toolyard_store::spaces::Space;
use toolyard_store::waits::WaitRow;
use toolyard_store::{ManualClock, Store, StoreError, agents, entities, log, messages, runs, spaces, waits};

use crate::postgres;

/// Where a story's data is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Base {
    Sqlite,
    Postgres,
}

pub(crate) struct Yard {
    pub(crate) rt: Arc<Runtime>,
    pub(crate) tenant: TenantId,
    pub(crate) space: SpaceId,
    pub(crate) ada: EntityId,
    pub(crate) bob: EntityId,
    pub(crate) bot: EntityId,
    folder: tempfile::TempDir,
}

/// The agent most stories use.
pub(crate) fn config(tools: Value, extra: Value) -> Value {
    let mut config = json!({
        "agent": {"name": "bot", "system": "Be brief."},
        "model": {"provider": "demo", "name": "demo"},
        "tools": tools,
    });
    for (key, value) in extra.as_object().cloned().unwrap_or_default() {
        config[key] = value;
    }
    config
}

fn settings() -> Settings {
    Settings { tick: Duration::from_millis(50), ..Settings::new(NodeId::parse("node_a").unwrap()) }
}

fn providers() -> Providers {
    let mut providers = Providers::default();
    providers.insert("demo", Arc::new(Demo::new("demo")));
    providers
}

async fn open(folder: &std::path::Path) -> Arc<Store> {
    let settings = toolyard_store::Settings::Sqlite { folder: folder.to_owned() };
    Arc::new(Store::open(&settings).await.unwrap())
}

impl Yard {
    pub(crate) async fn new(tools: Value) -> Self {
        Self::with(config(tools, json!({}))).await
    }

    pub(crate) async fn with(config: Value) -> Self {
        Self::with_providers(config, providers()).await
    }

    /// A vendor's wire format, spoken by a scripted upstream.
    pub(crate) async fn with_upstream(config: Value, upstream: &Upstream) -> Self {
        Self::with_vendor(config, ProviderKind::OpenAi, upstream).await
    }

    pub(crate) async fn with_vendor(mut config: Value, kind: ProviderKind, upstream: &Upstream) -> Self {
        config["model"]["provider"] = json!("vendor");
        let settings = ProviderSettings {
            name: "vendor".to_owned(),
            kind,
            base_url: Some(upstream.base_url()),
            api_key: None,
        };
        let door = toolyard_egress::Door::operator().unwrap();
        Self::with_providers(config, Providers::open(vec![settings], &door).unwrap()).await
    }

    /// A node that works on one run at a time.
    pub(crate) async fn with_one_slot(tools: Value) -> Self {
        let settings = Settings { active_runs: 1, tick: Duration::from_secs(3600), ..settings() };
        Self::started(config(tools, json!({})), Registry::bare(providers()), settings).await
    }

    /// A node whose database keeps the time that the story tells.
    pub(crate) async fn by_hand(tools: Value) -> (Self, Arc<ManualClock>) {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(1_800_000_000_000));
        let base = toolyard_store::Settings::Sqlite { folder: folder.path().to_owned() };
        let store = Arc::new(Store::open_with_clock(&base, clock.clone()).await.unwrap());
        let registry = Registry::bare(providers());
        (Self::built(folder, store, config(tools, json!({})), registry, settings()).await, clock)
    }

    /// One more conversation of Ada and the bot.
    pub(crate) async fn another_space(&mut self) {
        let (t, members) = (self.tenant.clone(), [self.ada.clone(), self.bot.clone()]);
        let made = self.rt.store().write(move |tx| {
            Box::pin(async move {
                let space = new_space(tx.now().await?);
                spaces::insert(tx, &t, &space).await?;
                for id in &members {
                    spaces::put_member(tx, &t, &space.id, id, Role::Member).await?;
                }
                Ok::<_, StoreError>(space.id)
            })
        });
        self.space = made.await.unwrap();
    }

    async fn with_providers(config: Value, providers: Providers) -> Self {
        Self::started(config, Registry::bare(providers), settings()).await
    }

    pub(crate) async fn with_registry(config: Value, registry: Registry) -> Self {
        Self::started(config, registry, settings()).await
    }

    /// A vendor's wire format, on the database of the story.
    pub(crate) async fn told(base: Base, mut config: Value, upstream: &Upstream) -> Self {
        config["model"]["provider"] = json!("vendor");
        let vendor = ProviderSettings {
            name: "vendor".to_owned(),
            kind: ProviderKind::OpenAi,
            base_url: Some(upstream.base_url()),
            api_key: None,
        };
        let door = toolyard_egress::Door::operator().unwrap();
        let registry = Registry::bare(Providers::open(vec![vendor], &door).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let store = match base {
            Base::Sqlite => open(folder.path()).await,
            Base::Postgres => {
                let url = toolyard_store::DatabaseUrl::new(postgres::database());
                Arc::new(Store::open(&toolyard_store::Settings::Postgres { url }).await.unwrap())
            }
        };
        Self::built(folder, store, config, registry, settings()).await
    }

    /// The demo model, on PostgreSQL.
    pub(crate) async fn on_postgres(tools: Value) -> Self {
        let url = toolyard_store::DatabaseUrl::new(postgres::database());
        let store = Arc::new(Store::open(&toolyard_store::Settings::Postgres { url }).await.unwrap());
        let folder = tempfile::tempdir().unwrap();
        Self::built(folder, store, config(tools, json!({})), Registry::bare(providers()), settings()).await
    }

    async fn started(config: Value, registry: Registry, settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        Self::built(folder, store, config, registry, settings).await
    }

    async fn built(
        folder: tempfile::TempDir,
        store: Arc<Store>,
        config: Value,
        registry: Registry,
        settings: Settings,
    ) -> Self {
        let tenant = TenantId::default_tenant();
        let rt = Runtime::start(store.clone(), registry, Toolbox::default(), settings).await.unwrap();
        check_agent(&config).unwrap();
        let t = tenant.clone();
        let made = store
            .write(move |tx| {
                Box::pin(async move {
                    let name = AgentName::parse("bot").unwrap();
                    agents::upsert(tx, &t, &name, &config).await?;
                    let now = tx.now().await?;
                    let mut ids = Vec::new();
                    for (kind, agent) in [
                        (EntityKind::Human, None),
                        (EntityKind::Human, None),
                        (EntityKind::Agent, Some(name)),
                    ] {
                        let entity = Entity {
                            id: EntityId::mint(),
                            kind,
                            external_id: None,
                            display_name: None,
                            agent,
                            metadata: None,
                            created_at: now,
                        };
                        entities::insert(tx, &t, &entity).await?;
                        ids.push(entity.id);
                    }
                    let space = new_space(now);
                    spaces::insert(tx, &t, &space).await?;
                    for id in &ids {
                        spaces::put_member(tx, &t, &space.id, id, Role::Member).await?;
                    }
                    Ok::<_, StoreError>((space.id, ids))
                })
            })
            .await
            .unwrap();
        let (space, ids) = made;
        let [ada, bob, bot] = ids.try_into().unwrap();
        Self { rt, tenant, space, ada, bob, bot, folder }
    }

    /// The process dies: no goodbye, no hand-back. A new one opens the same folder.
    pub(crate) async fn crash(self) -> Self {
        let Self { rt, tenant, space, ada, bob, bot, folder } = self;
        // A copy of the files is what a dead process leaves, and needs no lock.
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        rt.stop(Duration::ZERO).await;
        let store = open(copy.path()).await;
        let rt =
            Runtime::start(store, Registry::bare(providers()), Toolbox::default(), settings()).await.unwrap();
        Self { rt, tenant, space, ada, bob, bot, folder: copy }
    }

    pub(crate) fn secret(&self) -> Principal {
        Principal {
            tenant: self.tenant.clone(),
            key: KeyId::parse("key_test").unwrap(),
            kind: KeyKind::Secret,
            entity: None,
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller {
            tenant: self.tenant.clone(),
            viewer: Viewer::secret(),
            actor: Actor::caller(&self.secret(), None),
        }
    }

    pub(crate) fn caller_as(&self, entity: &EntityId) -> Caller {
        let principal = Principal { kind: KeyKind::Public, entity: Some(entity.clone()), ..self.secret() };
        Caller {
            tenant: self.tenant.clone(),
            viewer: Viewer::public(entity.clone(), Role::Member),
            actor: Actor::caller(&principal, None),
        }
    }

    pub(crate) async fn post(&self, sender: &EntityId, text: &str) -> Posted {
        let post = PostMessage {
            trace: None,
            by: self.secret(),
            space: self.space.clone(),
            sender: Some(sender.clone()),
            speaker: Speaker::User,
            parts: vec![Part::text(text)],
            metadata: None,
            trigger_agents: true,
            model: None,
            categories: None,
            client_tools: Default::default(),
        };
        match self.rt.post_message(post, None).await.unwrap() {
            Fresh::Done(posted) => posted,
            Fresh::Before { .. } => panic!("no key was given"),
        }
    }

    /// Ada says something; the bot's run.
    pub(crate) async fn say(&self, text: &str) -> RunId {
        self.post(&self.ada, text).await.runs[0].run.clone().unwrap()
    }

    pub(crate) async fn say_again(&self, text: &str) -> (RunId, Disposition) {
        let reached = self.post(&self.ada, text).await.runs.remove(0);
        (reached.run.unwrap(), reached.disposition)
    }

    pub(crate) async fn events(&self, run: &RunId) -> Vec<Event> {
        let (t, run) = (self.tenant.clone(), run.clone());
        let read =
            self.rt.store().read(move |tx| Box::pin(async move { log::read(tx, &t, &run, 0, 1000).await }));
        read.await.unwrap().into_iter().map(|l| l.event).collect()
    }

    pub(crate) async fn kinds(&self, run: &RunId) -> Vec<&'static str> {
        self.events(run).await.iter().map(Event::kind).collect()
    }

    pub(crate) async fn status(&self, run: &RunId) -> RunStatus {
        let (t, run) = (self.tenant.clone(), run.clone());
        let read = self.rt.store().read(move |tx| Box::pin(async move { runs::get(tx, &t, &run).await }));
        read.await.unwrap().unwrap().status
    }

    /// Waits until the run has this status: for a fact, not for a time.
    pub(crate) async fn until(&self, run: &RunId, status: RunStatus) {
        let mut watch = self.rt.store().feed().watch_run(run);
        let reached = async {
            while self.status(run).await != status {
                let _ = tokio::time::timeout(Duration::from_millis(100), watch.committed.changed()).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(20), reached).await.is_err() {
            panic!("{:?} never came: {:?} {:?}", status, self.status(run).await, self.kinds(run).await);
        }
    }

    /// Waits until no task and no reader holds anything of any run.
    pub(crate) async fn until_quiet(&self) {
        let quiet = async {
            while !self.rt.store().feed().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), quiet).await.expect("something stays in memory");
    }

    pub(crate) async fn open_waits(&self, run: &RunId) -> Vec<WaitRow> {
        let (t, run) = (self.tenant.clone(), run.clone());
        let read =
            self.rt.store().read(move |tx| Box::pin(async move { waits::open_of_run(tx, &t, &run).await }));
        read.await.unwrap()
    }

    pub(crate) async fn submit(
        &self,
        run: &RunId,
        call: &CallId,
        value: Value,
    ) -> Result<Submitted, ApiError> {
        let result = ResultIn { call: call.clone(), outcome: ToolOutcome::Ok(value) };
        Ok(self.rt.submit(self.caller(), run.clone(), vec![result]).await?[0])
    }

    pub(crate) async fn messages(&self) -> Vec<Message> {
        let (t, space) = (self.tenant.clone(), self.space.clone());
        let read = self
            .rt
            .store()
            .read(move |tx| Box::pin(async move { messages::page(tx, &t, &space, None, None, 200).await }));
        read.await.unwrap()
    }

    /// The text of the newest assistant message.
    pub(crate) async fn answer(&self) -> String {
        let messages = self.messages().await;
        let last = messages.iter().rev().find(|m| m.speaker == Speaker::Assistant).unwrap();
        toolyard_protocol::message::text_of(&last.parts)
    }
}

/// A tool that a client runs.
pub(crate) fn client_tool(name: &str) -> Value {
    json!({"name": name, "description": "A client tool", "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}}})
}

/// A tool that the gateway answers by itself.
pub(crate) fn static_tool(name: &str) -> Value {
    json!({"name": name, "description": "Static", "executionType": "basic", "execution": {"mode": "static", "output": {"tool": name}}})
}

fn new_space(created_at: toolyard_protocol::Timestamp) -> Space {
    Space {
        id: SpaceId::mint(),
        name: None,
        description: None,
        metadata: None,
        show_reasoning: false,
        last_pos: 0,
        branch: BranchId::main(),
        tainted: false,
        created_at,
    }
}
