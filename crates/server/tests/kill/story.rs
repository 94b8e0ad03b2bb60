//! What a client does, and what the world looks like afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::database::Database;
use crate::gateway::Gateway;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Story {
    Text,
    /// Text that takes long enough to be heard word by word.
    Spoken,
    ClientTool,
    GatewayTool,
    Approval,
    /// A prebuilt tool: its effect is in the database itself.
    Goals,
    /// A plan that is due.
    Plan,
}

/// The world after a story.
pub(crate) struct Ended {
    pub(crate) deaths: u32,
    /// From the start of the process that replaced a dead one to the run's end.
    pub(crate) recovery: Option<Duration>,
    pub(crate) events: Vec<Value>,
    pub(crate) runs: Vec<Value>,
    pub(crate) messages: Vec<Value>,
    pub(crate) open_waits: usize,
    /// One line per execution of the recorder tool: its call id first.
    pub(crate) recorded: Vec<String>,
    /// Goals of the agent. They are removed when they have been counted.
    pub(crate) goals: usize,
    /// What a reader of the space heard: name and data.
    pub(crate) heard: Vec<(String, Value)>,
    /// What the gateways wrote to their error output.
    pub(crate) log: String,
}

impl Story {
    fn says(self) -> &'static str {
        match self {
            Self::Text | Self::Plan => "say all is well",
            Self::Spoken => "slow 3\nsay all is well",
            Self::ClientTool => "call read_screen {\"area\":\"top\"}",
            Self::GatewayTool => "call record {\"what\":\"this\"}",
            Self::Approval => "call approve_record {\"what\":\"that\"}",
            Self::Goals => "call setGoals {\"goals\":[{\"description\":\"survive\"}]}",
        }
    }

    /// Runs the story on a world that is set up, with one place armed.
    pub(crate) async fn run(self, world: &World, failpoint: Option<&str>) -> Ended {
        self.tell(world, armed(failpoint), false).await
    }

    /// As `run`, where commits fail by chance: seed, and how many of a thousand.
    pub(crate) async fn run_by_chance(self, world: &World, seed: u64, per_mille: u64) -> Ended {
        let dice = ("TOOLYARD_FAILPOINT_DICE".to_owned(), format!("{seed}:{per_mille}"));
        self.tell(world, vec![dice], true).await
    }

    /// As `run`, with a reader of the space from the beginning.
    pub(crate) async fn run_heard(self, world: &World, failpoint: &str) -> Ended {
        self.tell(world, armed(Some(failpoint)), true).await
    }

    async fn tell(self, world: &World, env: Vec<(String, String)>, hears: bool) -> Ended {
        let database = world.database.copy();
        let (space, ada) = (world.next_space(), &world.ada);
        let file = database.folder.path().join(RECORDED);
        let mut gateway = Gateway::start_with(&database, env);
        let listener = match hears {
            true => Some(gateway.listen(&format!("/api/smart-spaces/{space}/stream")).await),
            false => None,
        };
        let run = if self == Self::Plan {
            self.planned(&mut gateway, world, space).await
        } else {
            let message = json!({"entityId": ada, "content": self.says()});
            let posted = gateway.post(&format!("/api/smart-spaces/{space}/messages"), message).await;
            posted["runs"][0]["runId"].as_str().unwrap().to_owned()
        };
        follow(&mut gateway, &run).await;
        let recovery = gateway.reborn.map(|at| at.elapsed());

        let events = gateway.get(&format!("/api/runs/{run}/events?limit=200")).await;
        let runs = gateway.get(&format!("/api/smart-spaces/{space}/runs")).await;
        let messages = gateway.get(&format!("/api/smart-spaces/{space}/messages")).await;
        let waits = gateway.get(&format!("/api/waits?runId={run}")).await;
        let list = |value: &Value, name: &str| value[name].as_array().unwrap().clone();
        let goals = list(&gateway.get("/api/goals").await, "goals");
        for goal in &goals {
            let path = format!("/api/goals/{}", goal["id"].as_str().unwrap());
            gateway.call("DELETE", &path, None, None).await;
        }
        let recorded = std::fs::read_to_string(&file).unwrap_or_default();
        let heard = match listener {
            Some(listener) => listener.until_the_end().await,
            None => Vec::new(),
        };
        let ended = Ended {
            deaths: gateway.deaths,
            recovery,
            goals: goals.len(),
            heard,
            log: gateway.log(),
            events: list(&events, "events"),
            runs: list(&runs, "runs"),
            messages: list(&messages, "messages"),
            open_waits: list(&waits, "waits").len(),
            recorded: recorded.lines().map(str::to_owned).collect(),
        };
        gateway.stop();
        ended
    }

    /// Makes a plan that is due at once, and answers its run.
    async fn planned(self, gateway: &mut Gateway<'_>, world: &World, space: &str) -> String {
        let moment = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let now = toolyard_protocol::Timestamp::from_millis(i64::try_from(moment.as_millis()).unwrap());
        let plan = json!({
            "agentEntityId": world.bot, "entityId": world.ada, "smartSpaceId": space,
            "instruction": self.says(), "scheduledAt": now,
        });
        let made = gateway.post("/api/plans", plan).await;
        let path = format!("/api/plans/{}", made["plan"]["id"].as_str().unwrap());
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "the plan never starts\n{}", gateway.log());
            let plan = gateway.get(&path).await["plan"].clone();
            if let Some(run) = plan["lastRunId"].as_str() {
                assert_eq!((&plan["runs"], &plan["status"]), (&json!(1), &json!("completed")));
                return run.to_owned();
            }
        }
    }
}

fn armed(failpoint: Option<&str>) -> Vec<(String, String)> {
    failpoint.map(|place| ("TOOLYARD_FAILPOINT".to_owned(), place.to_owned())).into_iter().collect()
}

/// How long a run may take, with a death in between.
const PATIENCE: Duration = Duration::from_secs(60);

/// More than any of them dies.
const STORIES: usize = 250;

/// The recorder's file, in the folder that the gateway runs in.
const RECORDED: &str = "recorded.txt";

/// An agent, a person and a space: what comes before each story.
pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) spaces: Vec<String>,
    used: AtomicUsize,
    pub(crate) ada: String,
    pub(crate) bot: String,
}

impl World {
    pub(crate) async fn new(database: Database) -> Self {
        let count = if database.url.is_some() { STORIES } else { 1 };
        Self::with_spaces(database, count).await
    }

    pub(crate) async fn with_spaces(database: Database, count: usize) -> Self {
        let mut gateway = Gateway::start(&database, None);
        let (spaces, ada, bot) = set_up(&mut gateway, count).await;
        gateway.stop();
        Self { database, spaces, used: AtomicUsize::new(0), ada, bot }
    }

    /// A space that no other story on the same database has used.
    fn next_space(&self) -> &str {
        let i = self.used.fetch_add(1, Ordering::Relaxed);
        if self.database.url.is_some() { &self.spaces[i] } else { &self.spaces[0] }
    }
}

async fn set_up(gateway: &mut Gateway<'_>, spaces: usize) -> (Vec<String>, String, String) {
    let config = json!({
        "agent": {"name": "bot"},
        "model": {"provider": "demo", "name": "demo"},
        "tools": [
            {"name": "read_screen", "description": "On a client"},
            {"name": "record", "executionType": "recorder", "execution": {"file": RECORDED}},
            {"name": "approve_record", "executionType": "recorder", "execution": {"file": RECORDED}, "approval": "ask"},
            {"executionType": "prebuilt", "execution": {"action": "setGoals"}},
            {"name": "rest", "executionType": "waiting", "execution": {}},
        ],
    });
    gateway.post("/api/agents", json!({"config": config})).await;
    let id = |value: Value, name: &str| value[name]["id"].as_str().unwrap().to_owned();
    let ada = id(gateway.post("/api/entities", json!({"type": "human"})).await, "entity");
    let bot = id(gateway.post("/api/entities/agent", json!({"agentId": "bot"})).await, "entity");
    let mut made = Vec::new();
    for _ in 0..spaces {
        let space = id(gateway.post("/api/smart-spaces", json!({})).await, "smartSpace");
        for entity in [&ada, &bot] {
            gateway.post(&format!("/api/smart-spaces/{space}/members"), json!({"entityId": entity})).await;
        }
        made.push(space);
    }
    (made, ada, bot)
}

/// Answers whatever the run waits for until it has ended.
async fn follow(gateway: &mut Gateway<'_>, run: &str) {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < PATIENCE, "{run} does not end\n{}", gateway.log());
        let status = gateway.get(&format!("/api/runs/{run}")).await["run"]["status"].clone();
        match status.as_str().unwrap() {
            "completed" | "failed" | "canceled" => return,
            "waiting_tool" => {}
            _ => continue,
        }
        for wait in gateway.get(&format!("/api/waits?runId={run}")).await["waits"].as_array().unwrap() {
            answer(gateway, run, wait).await;
        }
    }
}

async fn answer(gateway: &mut Gateway<'_>, run: &str, wait: &Value) {
    let id = wait["id"].as_str().unwrap();
    let (path, body) = match wait["kind"].as_str().unwrap() {
        "client" => (
            format!("/api/runs/{run}/tool-results"),
            json!({"callId": wait["toolCallId"], "result": {"seen": wait["toolCallId"]}}),
        ),
        "approval" => (format!("/api/waits/{id}/answer"), json!({"decision": "allow"})),
        other => panic!("nobody waits for {other} here"),
    };
    let (status, said) = gateway.call("POST", &path, Some(&body), None).await;
    // An answer whose first try was taken before a death is a repeat.
    assert!(status == 200 || status == 409, "{path}: {status} {said}");
}
