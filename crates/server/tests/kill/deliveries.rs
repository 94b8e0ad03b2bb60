//! D1 for what leaves the gateway: a webhook, a letter and a notification of a
//! task. A delivery that a death cuts short is made again with the same id and
//! the same words; none is lost, and one that is written down as made is not
//! made again.
//!
//! One run sends all three: its tool writes the letter, its end tells the others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::{Value, json};
use toolyard_store::failpoint::OF_DELIVERIES;

use crate::database::Database;
use crate::gateway::{Gateway, forget_binary};
use crate::places::{self, NOWHERE};
use crate::receivers::{FarSide, PostOffice};
use crate::story::say;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(60);
/// The first, the second and the third time.
const TIMES: u32 = 3;
/// Stories that are told at once.
const AT_ONCE: usize = 4;

struct Stage {
    world: World,
    far: FarSide,
    office: PostOffice,
    env: Vec<(String, String)>,
}

/// What one run sent: id and words of each parcel, as often as it came.
#[derive(Debug, Default)]
struct Sent {
    letter: Vec<(String, String)>,
    webhook: Vec<(String, String)>,
    push: Vec<(String, String)>,
}

impl Stage {
    async fn new(database: Database) -> Self {
        let (far, office) = (FarSide::start().await, PostOffice::open().await);
        let port = office.port.to_string();
        let env = [
            ("TOOLYARD_ALLOW_PRIVATE_NETWORK", far.address.as_str()),
            ("TOOLYARD_SMTP_HOST", "127.0.0.1"),
            ("TOOLYARD_SMTP_PORT", &port),
            ("TOOLYARD_SMTP_TLS", "none"),
            ("TOOLYARD_SMTP_FROM", "Yard <yard@example.com>"),
        ];
        let env: Vec<_> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let world = World::for_stories(database, 40).await;
        let mut gateway = Gateway::start_with(&world.database, env.clone());
        let hook = json!({"url": format!("{}/hook", far.url()), "events": ["run.completed"]});
        let known = json!({"metadata": {"email": "ada@example.org"}});
        let entity = format!("/api/entities/{}", world.ada);
        for (method, path, body) in [("POST", "/api/webhooks", hook), ("PATCH", &entity, known)] {
            let (status, said) = gateway.call(method, path, Some(&body), None).await;
            assert!(status < 300, "{path}: {status} {said}");
        }
        gateway.stop();
        Self { world, far, office, env }
    }

    /// One run from its message to the last delivery, with one place armed:
    /// what arrived of it, how often it died, and what it said on its way.
    async fn told(&self, place: &str) -> (Sent, u32, String) {
        // The outbox is the database's: two stories would deliver for each other.
        let database = self.world.database.twin();
        let mut env = self.env.clone();
        env.push(("TOOLYARD_FAILPOINT".to_owned(), place.to_owned()));
        let mut gateway = Gateway::start_with(&database, env);
        let letter = format!("sent at {place}");
        let notice = json!({"title": "Hello", "message": letter});
        let text = format!("call sendNotification {notice}\ncall read_screen {{}}");
        let run = say(&mut gateway, self.world.next_space(), &self.world.ada, &text).await;
        come_to(&mut gateway, &run, "waiting_tool").await;
        // The letter is alone on its way: what is killed there is known.
        emptied(&mut gateway, &database, place).await;
        let push = json!({"url": format!("{}/push", self.far.url()), "token": "tok"});
        let body = json!({"taskId": run, "pushNotificationConfig": push});
        let path = format!("/a2a/bot/v1/tasks/{run}/pushNotificationConfigs");
        let (status, said) = gateway.call("POST", &path, Some(&body), None).await;
        assert!(status < 300, "{path}: {status} {said}");
        let waits = gateway.get(&format!("/api/waits?runId={run}")).await;
        let result = json!({"callId": waits["waits"][0]["toolCallId"], "result": {"seen": true}});
        gateway.post(&format!("/api/runs/{run}/tool-results"), result).await;
        come_to(&mut gateway, &run, "completed").await;
        emptied(&mut gateway, &database, place).await;
        gateway.stop();
        // It may die behind its last commit, when nobody looks any more.
        let log = std::fs::read_to_string(database.folder.path().join("log.txt")).unwrap();
        let deaths = log.matches(": kill\n").count().try_into().unwrap();

        let mut sent = Sent::default();
        let letters = self.office.letters().into_iter().filter(|one| one.text.trim_end() == letter);
        sent.letter.extend(letters.map(|one| (one.id, one.text)));
        for one in self.far.asked() {
            let body = one.json();
            let header = |name: &str| one.header(name).unwrap().to_owned();
            match one.line.as_str() {
                "POST /hook HTTP/1.1" if body["runId"] == json!(run) => {
                    sent.webhook.push((header("x-toolyard-id"), one.body.clone()));
                }
                "POST /push HTTP/1.1" if body["id"] == json!(run) => {
                    sent.push.push((notice_id(&header("x-toolyard-notice")), one.body.clone()));
                }
                // Of another story.
                _ => {}
            }
        }
        (sent, deaths, log)
    }
}

/// The id in a signed notice.
fn notice_id(notice: &str) -> String {
    use base64::Engine as _;
    let claims = notice.split('.').nth(1).unwrap();
    let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["jti"].as_str().unwrap().to_owned()
}

async fn come_to(gateway: &mut Gateway<'_>, run: &str, wanted: &str) {
    let started = Instant::now();
    loop {
        let now = gateway.get(&format!("/api/runs/{run}")).await["run"]["status"].clone();
        if now == wanted {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{run} is {now}\n{}", gateway.log());
    }
}

/// Waits until nothing is left to deliver. A gateway that dies meanwhile is replaced.
async fn emptied(gateway: &mut Gateway<'_>, database: &Database, place: &str) {
    let started = Instant::now();
    while database.number("SELECT count(*) FROM outbox") > 0 {
        gateway.call("GET", "/health", None, None).await;
        assert!(started.elapsed() < PATIENCE, "the outbox is not empty at {place}\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How often a parcel comes that dies at a place and is alone there.
fn times_at(name: &str) -> usize {
    match name {
        // It was there, and nobody had written that down.
        "delivery.after_attempt" | "settle.before_commit" => 2,
        _ => 1,
    }
}

fn check(sent: &Sent, deaths: u32, name: &str, nth: u32) {
    let place = format!("{name}:kill:{nth}: {sent:?}");
    for (kind, came) in [("letter", &sent.letter), ("webhook", &sent.webhook), ("push", &sent.push)] {
        let alike: BTreeMap<&str, &str> =
            came.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        assert_eq!(alike.len(), 1, "a {kind} came as several, or never: {place}");
        assert!(!came[0].0.is_empty(), "a {kind} has no id: {place}");
        assert!(came.iter().all(|one| *one == came[0]), "a {kind} came in other words: {place}");
        assert!(came.len() <= 1 + usize::try_from(deaths).unwrap(), "{kind}: {place}");
    }
    // The first one that comes by is the letter, alone. The others leave together:
    // a death at one of them cuts both.
    let letters = if nth == 1 && deaths > 0 { times_at(name) } else { 1 };
    assert_eq!(sent.letter.len(), letters, "{place}");
}

async fn at_every_place(database: fn() -> Database) {
    let stage = Stage::new(database()).await;
    let (sent, deaths, log) = stage.told(NOWHERE).await;
    assert_eq!(deaths, 0);
    check(&sent, 0, "no place", 0);
    let mut walk = Vec::new();
    for name in OF_DELIVERIES {
        let passes = places::passes(&log, name);
        assert!(passes >= 2, "{name} is passed {passes} times");
        walk.extend((1..=passes.min(TIMES)).map(|nth| (*name, nth)));
    }
    // They wait most of the time: an outbox is looked at once a second.
    let stage = &stage;
    let stories = walk.into_iter().map(|(name, nth)| async move {
        let (sent, deaths, _) = stage.told(&format!("{name}:kill:{nth}")).await;
        check(&sent, deaths, name, nth);
        // The parcels of the end may be taken together.
        assert!(deaths == 1 || nth > 2, "{name} did not kill");
        deaths
    });
    let died: u32 =
        futures::stream::iter(stories).buffer_unordered(AT_ONCE).collect::<Vec<u32>>().await.iter().sum();
    forget_binary();
    println!("{died} deaths, every parcel arrived under one id");
}

#[tokio::test]
async fn d1_a_delivery_arrives_under_one_id_over_every_death_on_sqlite() {
    at_every_place(Database::sqlite).await;
}

#[tokio::test]
async fn d1_a_delivery_arrives_under_one_id_over_every_death_on_postgres() {
    at_every_place(Database::postgres).await;
}
