//! A removal that a death cuts short is finished by the next start: nothing of
//! what was to go is left, and nothing else is gone. It is not asked for again.
//!
//! The world is told once. Every death has a copy of it, and what is left there
//! is compared row by row with what a removal without a death leaves.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_store::{DatabaseUrl, Settings, Store, StoreError, back_up};

use crate::database::Database;
use crate::gateway::{Gateway, forget_binary};

const PATIENCE: Duration = Duration::from_secs(60);
/// More than any of them is cut into.
const MOST: u32 = 60;
/// Tables that change with every start, or with the time.
const RESTLESS: &[&str] = &["nodes", "idempotency", "audit", "schema_version"];

/// What goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    Entity,
    Tenant,
    OldRuns,
}

impl Removal {
    fn places(self) -> &'static [&'static str] {
        match self {
            Self::Entity => &["removal.after_commit", "sweep.after_commit"],
            Self::Tenant => &["removal.after_commit"],
            Self::OldRuns => &["retire.after_commit", "sweep.after_commit"],
        }
    }

    /// What the removal takes along, and what must stay.
    fn words(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Entity => (&["ann-alone", "ann-among-others", "ann-learns"], &["bob-says", "acme-says"]),
            Self::Tenant => (&["acme-says"], &["ann-alone", "ann-among-others", "bob-says"]),
            // The conversation stays, whatever its runs were.
            Self::OldRuns => (&[], &["ann-alone", "ann-among-others", "bob-says", "acme-says"]),
        }
    }

    /// Statements that count what is still to go.
    fn left(self) -> &'static [&'static str] {
        match self {
            Self::Entity | Self::Tenant => &["SELECT count(*) FROM removals", "SELECT count(*) FROM remains"],
            Self::OldRuns => &["SELECT count(*) FROM runs WHERE live = 0", "SELECT count(*) FROM remains"],
        }
    }
}

struct World {
    database: Database,
    ann: String,
}

/// Speaks to a gateway of the stories, for a tenant of its own if it has a key.
struct Voice<'g, 'd> {
    gateway: &'g mut Gateway<'d>,
    key: Option<String>,
}

impl Voice<'_, '_> {
    async fn post(&mut self, path: &str, body: Value) -> Value {
        let (status, answer) = self.gateway.call_as(self.key.as_deref(), "POST", path, Some(&body)).await;
        assert!(status < 300, "POST {path}: {status} {answer}\n{}", self.gateway.log());
        answer
    }

    async fn made(&mut self, path: &str, what: &str, body: Value) -> String {
        self.post(path, body).await[what]["id"].as_str().unwrap().to_owned()
    }

    /// Says something, and waits until its run has come to this status.
    async fn say(&mut self, space: &str, entity: &str, text: &str, status: &str) {
        let message = json!({"entityId": entity, "content": text});
        let posted = self.post(&format!("/api/smart-spaces/{space}/messages"), message).await;
        let path = format!("/api/runs/{}", posted["runs"][0]["runId"].as_str().unwrap());
        let started = Instant::now();
        loop {
            let (_, run) = self.gateway.call_as(self.key.as_deref(), "GET", &path, None).await;
            if run["run"]["status"] == status {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{run}\n{}", self.gateway.log());
        }
    }

    /// An agent, its entity, and a space with these people and it.
    async fn room(&mut self, people: &[&str]) -> String {
        let large = json!({"mode": "static", "output": {"text": "x".repeat(100_000)}});
        let tools = json!([
            {"name": "read_screen", "description": "On a client"},
            {"name": "large", "execution": large},
        ]);
        let config =
            json!({"agent": {"name": "bot"}, "model": {"provider": "demo", "name": "demo"}, "tools": tools});
        self.post("/api/agents", json!({"config": config})).await;
        let bot = self.made("/api/entities/agent", "entity", json!({"agentId": "bot"})).await;
        let space = self.made("/api/smart-spaces", "smartSpace", json!({})).await;
        for one in people.iter().copied().chain([bot.as_str()]) {
            self.post(&format!("/api/smart-spaces/{space}/members"), json!({"entityId": one})).await;
        }
        space
    }
}

impl World {
    async fn new(database: Database) -> Self {
        let mut gateway = Gateway::start(&database, None);
        let mut voice = Voice { gateway: &mut gateway, key: None };
        let human = json!({"type": "human"});
        let ann = voice.made("/api/entities", "entity", human.clone()).await;
        let bob = voice.made("/api/entities", "entity", human.clone()).await;
        let space = voice.room(&[&ann, &bob]).await;
        // The agent repeats nothing of it: what it told others would stay.
        voice.say(&space, &ann, "ann-among-others", "completed").await;
        voice.say(&space, &bob, "say bob-says", "completed").await;
        voice.say(&space, &ann, "call large {}", "completed").await;
        voice.say(&space, &ann, "call read_screen {}", "waiting_tool").await;
        voice.post("/api/goals", json!({"entityId": ann, "description": "ann-learns"})).await;
        // A conversation that is hers alone.
        let parts = json!([{"type": "text", "text": "say ann-alone"}]);
        let chat = json!({"id": "hers", "agent": "bot", "entityId": ann,
            "messages": [{"id": "m1", "role": "user", "parts": parts}]});
        voice.post("/api/chat", chat).await;
        let key = voice.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
        voice.key = key["key"].as_str().map(str::to_owned);
        let eve = voice.made("/api/entities", "entity", human).await;
        let space = voice.room(&[&eve]).await;
        voice.say(&space, &eve, "say acme-says", "completed").await;
        voice.say(&space, &eve, "call read_screen {}", "waiting_tool").await;
        gateway.stop();
        Self { database, ann }
    }

    /// Removes from a copy of the world, with one place armed: what is left, and
    /// how often it died.
    async fn without(&self, removal: Removal, place: Option<&str>) -> (BTreeMap<String, Vec<String>>, u32) {
        let database = self.database.twin();
        let mut env: Vec<(String, String)> = Vec::new();
        env.extend(place.map(|place| ("TOOLYARD_FAILPOINT".to_owned(), place.to_owned())));
        if removal == Removal::OldRuns {
            env.push(("TOOLYARD_RETENTION_FINISHED_RUNS_DAYS".to_owned(), "0.000001".to_owned()));
        }
        let mut gateway = Gateway::start_with(&database, env);
        gateway.call("GET", "/health", None, None).await;
        let path = match removal {
            Removal::Entity => Some(format!("/api/entities/{}", self.ann)),
            Removal::Tenant => Some("/api/tenants/acme".to_owned()),
            Removal::OldRuns => None,
        };
        if let Some(path) = path {
            // Once: who asked is gone with the connection.
            let answered = gateway.once("DELETE", &path, None, None).await;
            assert!(matches!(answered, None | Some((204, _))), "{answered:?}");
        }
        let started = Instant::now();
        let left = loop {
            gateway.call("GET", "/health", None, None).await;
            let (store, _folder) = look(&database).await;
            let mut left = 0;
            for sql in removal.left() {
                left += number(&store, sql).await;
            }
            if left == 0 {
                let all = dump(&store).await;
                store.close().await;
                break all;
            }
            store.close().await;
            assert!(started.elapsed() < PATIENCE, "{left} are left at {place:?}\n{}", gateway.log());
        };
        let deaths = gateway.deaths;
        gateway.stop();
        (left, deaths)
    }
}

/// The database as it is now, beside the gateway.
async fn look(database: &Database) -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = match &database.url {
        Some(url) => Settings::Postgres { url: DatabaseUrl::new(url.clone()) },
        None => {
            back_up(database.folder.path(), &folder.path().join("toolyard.db")).unwrap();
            Settings::Sqlite { folder: folder.path().to_owned() }
        }
    };
    (Store::open(&settings).await.unwrap(), folder)
}

async fn rows(store: &Store, sql: String) -> Vec<String> {
    let sql: &'static str = sql.leak();
    let read = store
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { tx.all(sql, &[], |r| r.text(0)).await }));
    read.await.unwrap()
}

async fn number(store: &Store, sql: &'static str) -> i64 {
    let read = store
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { tx.one(sql, &[], |r| r.int(0)).await }));
    read.await.unwrap().unwrap()
}

/// Every row of every table, as text; of the audit what was removed and by whom.
async fn dump(store: &Store) -> BTreeMap<String, Vec<String>> {
    let sqlite = store.is_sqlite();
    let tables = if sqlite {
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'chunk_words%'"
    } else {
        "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'"
    };
    let mut all = BTreeMap::new();
    for table in rows(store, tables.to_owned()).await {
        if RESTLESS.contains(&table.as_str()) {
            continue;
        }
        let row = if sqlite {
            let columns =
                rows(store, format!("SELECT 'quote(\"' || name || '\")' FROM pragma_table_info('{table}')"));
            columns.await.join(" || ' ' || ")
        } else {
            format!("\"{table}\"::text")
        };
        all.insert(table.clone(), rows(store, format!("SELECT {row} FROM \"{table}\" ORDER BY 1")).await);
    }
    let audit = "SELECT tenant || ' ' || actor || ' ' || action || ' ' || target FROM audit WHERE action LIKE '%.delete' ORDER BY 1";
    all.insert("audit".to_owned(), rows(store, audit.to_owned()).await);
    all
}

fn tells(left: &BTreeMap<String, Vec<String>>, word: &str) -> bool {
    let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    let in_row = |row: &String| row.contains(word) || row.to_lowercase().contains(&hex);
    left.iter().any(|(table, rows)| table != "audit" && rows.iter().any(in_row))
}

async fn at_every_place(removal: Removal, database: fn() -> Database) {
    let world = World::new(database()).await;
    let (store, _folder) = look(&world.database).await;
    let before = dump(&store).await;
    store.close().await;
    let (clean, deaths) = world.without(removal, None).await;
    assert_eq!(deaths, 0);
    let (gone, kept) = removal.words();
    for word in gone {
        assert!(tells(&before, word) && !tells(&clean, word), "{word} is left");
    }
    for word in kept {
        assert!(tells(&before, word) && tells(&clean, word), "{word} is gone");
    }
    let mut deaths = 0;
    for name in removal.places() {
        let mut nth = 1;
        loop {
            let place = format!("{name}:kill:{nth}");
            let (left, died) = world.without(removal, Some(&place)).await;
            for (table, rows) in &clean {
                assert_eq!(&left[table], rows, "{table} after {place}");
            }
            if died == 0 {
                break;
            }
            assert!(nth < MOST, "{place} is passed without end");
            deaths += died;
            // A copy of a PostgreSQL takes long: there, each time twice as far.
            nth = if world.database.url.is_some() { nth * 2 } else { nth + 1 };
        }
    }
    forget_binary();
    // A story that never dies proves nothing.
    assert!(deaths >= 4, "only {deaths} deaths");
    println!("{removal:?}: {deaths} deaths, nothing left over, nothing else gone");
}

macro_rules! stories {
    ($($name:ident: $removal:ident),* $(,)?) => {
        mod sqlite {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                at_every_place(Removal::$removal, Database::sqlite).await;
            })*
        }
        mod postgres {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                at_every_place(Removal::$removal, Database::postgres).await;
            })*
        }
    };
}

stories! {
    d1_the_removal_of_an_entity_is_finished_over_every_death: Entity,
    d1_the_removal_of_a_tenant_is_finished_over_every_death: Tenant,
    d1_old_runs_go_whole_over_every_death: OldRuns,
}
