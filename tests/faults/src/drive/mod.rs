//! Real gateways, real clients and a storm by seed. What happens is written
//! into a [`History`]; nothing here judges it.

mod client;
mod dump;
pub mod far_side;
mod nodes;
mod postgres;
mod readers;
#[path = "../../../../crates/store/tests/it/redis_server.rs"]
#[allow(dead_code, reason = "shared with the store's tests, which use all of it")]
mod redis_server;
mod stories;
mod storm;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::history::{History, Record};

pub use stories::Scenario;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Database {
    Sqlite,
    /// Two gateways on one PostgreSQL server of their own.
    Postgres,
}

/// What to play, and with which programs.
#[derive(Debug, Clone)]
pub struct Plan {
    pub gateway: PathBuf,
    /// Another release. Each new life of a node is of the one or the other, by
    /// dice; when the storm is over all are of `gateway`.
    pub other: Option<PathBuf>,
    /// All begin as the other release, and each next life is of `gateway`.
    pub onward: bool,
    /// Of a thousand commits so many fail, and as many lose their answer. Then
    /// nothing else breaks, so nothing may be in doubt. The gateway must be a
    /// build with failpoints.
    pub errors: u64,
    /// The nodes have a Redis between them, which is killed and hangs as well.
    pub redis: bool,
    /// This package's own program: the far side runs as a process of its own.
    pub far_side: PathBuf,
    pub scenario: Scenario,
    pub database: Database,
    pub seed: u64,
    pub storm: Duration,
    /// Clients that work at once.
    pub players: usize,
}

/// Everything that the players share.
pub(crate) struct Yard {
    plan: Plan,
    nodes: Vec<nodes::Node>,
    postgres: Option<postgres::Postgres>,
    redis: Option<Mutex<redis_server::RedisServer>>,
    far_side: far_side::FarSide,
    http: reqwest::Client,
    history: Mutex<History>,
    calm: AtomicBool,
    /// When the storm ended.
    calmed: Mutex<Option<Instant>>,
}

impl Yard {
    pub(crate) fn note(&self, record: Record) {
        self.history.lock().unwrap().push(record);
    }
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::SeqCst)
    }
    /// How long it has been quiet.
    pub(crate) fn quiet(&self) -> Duration {
        self.calmed.lock().unwrap().map(|at| at.elapsed()).unwrap_or_default()
    }
}

/// The machine's time, which is also the databases'.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Plays the plan to its end and answers the history.
pub async fn run(plan: Plan) -> History {
    let mut dice = Dice::new(plan.seed);
    let yard = Arc::new(set_up(plan).await);
    let cast = stories::cast(&yard).await;
    let mut players = tokio::task::JoinSet::new();
    for number in 0..yard.plan.players {
        players.spawn(stories::player(yard.clone(), cast.clone(), number, dice.fork()));
    }
    let until = Instant::now() + yard.plan.storm;
    if yard.plan.errors > 0 {
        storm::drizzle(&yard, until).await;
    } else {
        storm::rage(&yard, &mut dice, until).await;
    }
    yard.calm.store(true, Ordering::SeqCst);
    *yard.calmed.lock().unwrap() = Some(Instant::now());
    while let Some(done) = players.join_next().await {
        done.expect("a player");
    }
    dump::dump(&yard, &cast).await;
    let failed = yard.nodes.iter().map(|node| node.log().matches(": by chance\n").count()).sum();
    yard.note(Record::Failed { commits: failed });
    let history = std::mem::take(&mut *yard.history.lock().unwrap());
    for node in &yard.nodes {
        node.end();
    }
    history
}

async fn set_up(plan: Plan) -> Yard {
    let far_side = far_side::FarSide::start(&plan.far_side, plan.seed);
    let postgres = (plan.database == Database::Postgres).then(postgres::Postgres::start);
    // An upgrade has a middle, in which both releases work for a while.
    let count = match (&postgres, plan.onward) {
        (Some(_), true) => 3,
        (Some(_), false) => 2,
        (None, _) => 1,
    };
    let first = plan.other.as_ref().filter(|_| plan.onward).unwrap_or(&plan.gateway);
    let url = postgres.as_ref().map(|server| server.url.clone());
    // It dies with the thread that starts it: the one that waits for the whole play.
    let redis = plan.redis.then(redis_server::RedisServer::start);
    let redis_url = redis.as_ref().map(redis_server::RedisServer::url);
    let nodes = (0..count).map(|_| {
        let chance = (plan.errors > 0).then_some((plan.seed, plan.errors));
        nodes::Node::start(first, url.as_deref(), redis_url.as_deref(), &far_side.address, chance)
    });
    let nodes: Vec<_> = nodes.collect();
    let http =
        reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().expect("a client");
    let yard = Yard {
        nodes,
        postgres,
        redis: redis.map(Mutex::new),
        far_side,
        http,
        history: Mutex::default(),
        calm: AtomicBool::new(false),
        calmed: Mutex::default(),
        plan,
    };
    let (scenario, database) = (format!("{:?}", yard.plan.scenario), format!("{:?}", yard.plan.database));
    yard.note(Record::Began { scenario, seed: yard.plan.seed, database });
    yard
}
