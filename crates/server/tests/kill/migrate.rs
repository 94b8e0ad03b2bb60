//! D1 for a new release: a gateway that dies while it brings a database to its
//! schema leaves what was there, and the next start brings it there.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use toolyard_store::{Settings, Store, known_version};

use crate::check::{self, Doubt};
use crate::database::{Database, psql};
use crate::gateway::{Gateway, forget_binary};
use crate::story::Story;
use crate::world::World;

/// A database that the gateway of an earlier release left, with runs in flight.
const GOLDEN: &[u8] = include_bytes!("../it/golden/schema-12.db.gz");
const GOLDEN_VERSION: i64 = 12;

fn unpacked() -> Database {
    let database = Database::sqlite();
    let file = std::fs::File::create(database.folder.path().join("toolyard.db")).unwrap();
    let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(file).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(GOLDEN).unwrap();
    assert!(gzip.wait().unwrap().success());
    // What waits for somebody waits a day. The file is older.
    let db = rusqlite::Connection::open(database.folder.path().join("toolyard.db")).unwrap();
    db.execute("UPDATE waits SET expires_at = expires_at * 2 WHERE kind <> 'timer'", []).unwrap();
    database
}

/// The schema's version, every event and every wait.
fn content(folder: &Path) -> (i64, Vec<String>) {
    let db = rusqlite::Connection::open(folder.join("toolyard.db")).unwrap();
    let version = db.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    let mut all = Vec::new();
    for table in [EVENTS, WAITS] {
        let mut rows = db.prepare(table).unwrap();
        let rows = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
        all.extend(rows.map(Result::unwrap));
    }
    (version, all)
}

const EVENTS: &str = "SELECT tenant || ' ' || run || ' ' || seq || ' ' || at || ' ' || body FROM events \
    ORDER BY tenant, run, seq";
const WAITS: &str = "SELECT tenant || ' ' || run || ' ' || id || ' ' || root || ' ' || kind || ' ' || call \
    || ' ' || tool || ' ' || visibility || ' ' || rule || ' ' || payload || ' ' || opened_seq || ' ' \
    || opened_at || ' ' || coalesce(expires_at, 0) || ' ' || coalesce(ended_seq, 0) \
    FROM waits ORDER BY tenant, run, id";

#[tokio::test]
async fn d1_a_new_schema_is_reached_over_every_death_on_sqlite() {
    let steps = u32::try_from(known_version() - GOLDEN_VERSION).unwrap();
    for nth in 1..=steps {
        let database = unpacked();
        let (version, before) = content(database.folder.path());
        assert!(version == GOLDEN_VERSION && before.len() > 20, "{version}, {} rows", before.len());
        let dead = Gateway::start(&database, Some(&format!("migrate.mid:kill:{nth}")));
        assert_eq!(dead.outlived().0, None, "killed");
        // The steps before are done; of this one nothing is left.
        let (version, left) = content(database.folder.path());
        assert_eq!(version, GOLDEN_VERSION + i64::from(nth) - 1);
        assert_eq!(left, before, "step {nth}");
        // The next one goes on from there. Nobody has answered meanwhile.
        let settings = Settings::Sqlite { folder: database.folder.path().to_owned() };
        Store::open(&settings).await.unwrap().close().await;
        let (version, after) = content(database.folder.path());
        assert_eq!((version, after), (known_version(), before), "step {nth}");
        // And its runs are there: the one that waits for a client ends.
        let mut gateway = Gateway::start(&database, None);
        let wait = gateway.get("/api/waits?kind=client").await["waits"][0].clone();
        let run = wait["runId"].as_str().unwrap();
        let result = json!({"callId": wait["toolCallId"], "result": {"seen": true}});
        gateway.post(&format!("/api/runs/{run}/tool-results"), result).await;
        while gateway.get(&format!("/api/runs/{run}")).await["run"]["status"] != "completed" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    forget_binary();
}

/// What the last step did, taken back: the log of the spaces as a table of its own.
const BACK: [&str; 5] = [
    "CREATE TABLE space_log (tenant TEXT NOT NULL, space TEXT NOT NULL, last_pos BIGINT NOT NULL, run TEXT NOT NULL, \
     last_seq BIGINT NOT NULL, events BIGINT NOT NULL, PRIMARY KEY (tenant, space, last_pos))",
    "INSERT INTO space_log SELECT e.tenant, s.id, e.pos, e.run, e.seq, 1 + length(e.body) - length(replace(e.body, chr(10), '')) \
     FROM events e JOIN spaces s ON s.nr = e.space",
    "ALTER TABLE events DROP COLUMN space, DROP COLUMN pos",
    "ALTER TABLE spaces DROP COLUMN nr",
    "DELETE FROM schema_version WHERE version = 18",
];
const PLACES: &str = "SELECT e.run || ' ' || e.seq || ' ' || s.id || ' ' || e.pos FROM events e \
    JOIN spaces s ON s.nr = e.space ORDER BY e.run, e.seq";

/// All steps are one transaction there.
#[tokio::test]
async fn d1_a_new_schema_is_reached_over_every_death_on_postgres() {
    let world = World::with_spaces(Database::postgres(), 3).await;
    let url = world.database.url.clone().unwrap();
    let mut gateway = Gateway::start(&world.database, None);
    let message = json!({"entityId": world.ada, "content": "call read_screen {}"});
    gateway.post(&format!("/api/smart-spaces/{}/messages", world.other_space()), message).await;
    while psql(&url, "SELECT count(*) FROM waits") != ["1"] {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gateway.stop();
    let content = || {
        let version = psql(&url, "SELECT max(version) FROM schema_version");
        (version[0].parse::<i64>().unwrap(), [EVENTS, WAITS].map(|query| psql(&url, query)).concat())
    };
    let ((_, before), places) = (content(), psql(&url, PLACES));
    assert!(!places.is_empty() && known_version() == 18, "write here how the new last step is taken back");
    for sql in BACK {
        psql(&url, sql);
    }
    let dead = Gateway::start(&world.database, Some("migrate.mid:kill:1"));
    assert_eq!(dead.outlived().0, None, "killed");
    assert_eq!(content(), (known_version() - 1, before.clone()));
    let mut gateway = Gateway::start(&world.database, None);
    gateway.get("/ready").await;
    gateway.stop();
    assert_eq!((content(), psql(&url, PLACES)), ((known_version(), before), places));
    let ended = Story::Text.run(&world, None).await;
    check::outcome(Story::Text, Doubt::No, &ended, "a schema that was reached");
    // An empty database: nothing of half a schema is left.
    let empty = Database::postgres();
    let dead = Gateway::start(&empty, Some(&format!("migrate.mid:kill:{}", known_version())));
    assert_eq!(dead.outlived().0, None, "killed");
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(psql(empty.url.as_deref().unwrap(), tables), ["0"]);
    let world = World::with_spaces(empty, 1).await;
    let ended = Story::Text.run(&world, None).await;
    check::outcome(Story::Text, Doubt::No, &ended, "an empty database");
    forget_binary();
}
