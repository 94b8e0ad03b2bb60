//! D2: a gateway stands still before a commit. What that commit asks for has not
//! happened; and what it would have said is said by the next process.
//!
//! A watch looks at the gateway that stands: at what its database holds and at
//! what its tool did. Then it kills it, and the client goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::check::{self, Doubt};
use crate::database::{Database, psql};
use crate::gateway::{self, Gateway};
use crate::story::Story;
use crate::world::{RECORDED, World};

/// So long a gateway that stands may still do something that it must not do.
const LOOK: Duration = Duration::from_millis(150);

/// What was there while it stood.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Calls that had been executed.
    recorded: Vec<String>,
    /// Those of them that no committed event names.
    unlogged: Vec<String>,
}

/// Waits for a place to be reached.
pub(crate) struct Watch {
    name: String,
}

pub(crate) struct Watching {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Option<Standing>>,
}

impl Watch {
    /// If the gateway with these variables is to stand still somewhere.
    pub(crate) fn of(env: &[(String, String)]) -> Option<Self> {
        let (_, place) = env.iter().find(|(name, _)| name == "TOOLYARD_FAILPOINT")?;
        let (name, _) = place.split_once(":hang")?;
        Some(Self { name: name.to_owned() })
    }

    pub(crate) fn over(self, gateway: &Gateway<'_>, database: &Database) -> Watching {
        let over = Arc::new(AtomicBool::new(false));
        let (ended, pid) = (over.clone(), gateway.pid());
        let (folder, url) = (database.folder.path().to_owned(), database.url.clone());
        let thread = std::thread::spawn(move || self.stand(&folder, url.as_deref(), pid, &ended));
        Watching { over, thread }
    }

    fn stand(&self, folder: &Path, url: Option<&str>, pid: u32, over: &AtomicBool) -> Option<Standing> {
        let stands = format!("failpoint {}: hang", self.name);
        let file = folder.join(RECORDED);
        while !read(&folder.join("log.txt")).contains(&stands) {
            if over.load(Ordering::SeqCst) {
                return None;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let since = Instant::now();
        while since.elapsed() < LOOK && read(&file).is_empty() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let text = read(&file);
        let recorded: Vec<String> =
            text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        let unlogged = recorded.iter().filter(|call| !is_logged(folder, url, call)).cloned().collect();
        let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        assert!(killed.unwrap().success());
        Some(Standing { recorded, unlogged })
    }
}

impl Watching {
    pub(crate) fn stop(self) -> Option<Standing> {
        self.over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// Is a call named by an event that is committed?
fn is_logged(folder: &Path, url: Option<&str>, call: &str) -> bool {
    let query = format!("SELECT count(*) FROM events WHERE body LIKE '%{call}%'");
    match url {
        Some(url) => psql(url, &query) != ["0"],
        None => {
            let file: PathBuf = folder.join("toolyard.db");
            let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
            let db = rusqlite::Connection::open_with_flags(file, flags).unwrap();
            db.query_row(&query, [], |row| row.get::<_, i64>(0)).unwrap() > 0
        }
    }
}

async fn before_every_commit(places: &[(&str, u32)], database: fn() -> Database) {
    let world = World::for_stories(database(), 60).await;
    let (mut before, mut behind) = (0, 0);
    for (name, most) in places {
        for nth in 1..=*most {
            let place = format!("{name}:hang:{nth}");
            let ended = Story::GatewayTool.run(&world, Some(&place)).await;
            // Behind the end of the story it only says goodbye.
            let Some(stood) = ended.stood.as_ref().filter(|_| ended.deaths > 0) else {
                check::outcome(Story::GatewayTool, Doubt::No, &ended, &place);
                break;
            };
            assert_eq!(stood.unlogged, [""; 0], "{place}: executed before its commit");
            let doubt = if stood.recorded.is_empty() {
                Doubt::May
            } else {
                Doubt::of_death(Story::GatewayTool, name, 1)
            };
            check::outcome(Story::GatewayTool, doubt, &ended, &place);
            *(if stood.recorded.is_empty() { &mut before } else { &mut behind }) += 1;
        }
    }
    gateway::forget_binary();
    // Commits that lie before the call and behind it.
    assert!(before >= 2 && behind >= 1, "{before} before, {behind} behind");
    println!("stood still {before} times before the tool ran and {behind} times behind it");
}

#[tokio::test]
async fn d2_a_gateway_that_stands_before_a_commit_has_done_nothing_that_it_asks_for_on_sqlite() {
    let places = [
        ("start.before_commit", 9),
        ("append.before_commit", 9),
        ("finish.before_commit", 9),
        ("group.before_commit", 20),
    ];
    before_every_commit(&places, Database::sqlite).await;
}

#[tokio::test]
async fn d2_a_gateway_that_stands_before_a_commit_has_done_nothing_that_it_asks_for_on_postgres() {
    let places = [("start.before_commit", 2), ("append.before_commit", 9), ("finish.before_commit", 2)];
    before_every_commit(&places, Database::postgres).await;
}
