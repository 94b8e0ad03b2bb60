//! What a client does, and what the world looks like afterwards.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::hang::{self, Standing};
use crate::scenery::far_calls;
use crate::world::{RECORDED, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Story {
    Text,
    /// Text that takes long enough to be heard word by word.
    Spoken,
    ClientTool,
    GatewayTool,
    /// A gateway tool that may simply be run again.
    Repeatable,
    Approval,
    /// A prebuilt tool: its effect is in the database itself.
    Goals,
    /// A plan that is due.
    Plan,
    /// A waiting run that somebody stops.
    Cancel,
    /// A client's call that nobody answers in time.
    Expiry,
    /// A run that waits for a slot, because only one may be active.
    Queued,
    /// The gateway is told to stop while the model speaks.
    Stop,
    /// A tool of an MCP server that answers with a picture, which is kept as a file.
    McpCall,
    /// One that may simply be called again.
    McpRepeatable,
    /// One whose server goes on by itself, and is asked for the end.
    McpTask,
    /// A plugin looks at all that passes: a gateway tool, a client tool, the replies.
    Hooked,
}

/// The world after a story.
pub(crate) struct Ended {
    pub(crate) deaths: u32,
    /// What was there when the gateway stood still, if it did.
    pub(crate) stood: Option<Standing>,
    /// From the start of the process that replaced a dead one to the run's end.
    pub(crate) recovery: Option<Duration>,
    pub(crate) events: Vec<Value>,
    pub(crate) runs: Vec<Value>,
    pub(crate) messages: Vec<Value>,
    pub(crate) open_waits: usize,
    /// One line per execution of the recorder tool, its call id first; and of
    /// the MCP server's tools, the tool first.
    pub(crate) recorded: Vec<String>,
    /// Files that its calls brought.
    pub(crate) files: i64,
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
            Self::Text | Self::Plan | Self::Queued => "say all is well",
            Self::Cancel => "call read_screen {}",
            Self::Expiry => "call brief_screen {}",
            Self::Repeatable => "call record_safely {\"what\":\"this\"}",
            Self::Stop => "slow 20\nsay all is well",
            Self::Spoken => "slow 3\nsay all is well",
            Self::ClientTool => "call read_screen {\"area\":\"top\"}",
            Self::GatewayTool => "call record {\"what\":\"this\"}",
            Self::Approval => "call approve_record {\"what\":\"that\"}",
            Self::Goals => "call setGoals {\"goals\":[{\"description\":\"survive\"}]}",
            Self::McpCall => "call mcp_far_paint {\"what\":\"this\"}",
            Self::McpRepeatable => "call mcp_far_repaint {\"what\":\"this\"}",
            Self::McpTask => "call mcp_far_task_held {}",
            Self::Hooked => "call record_safely {\"what\":\"this\"}\ncall read_screen {\"area\":\"top\"}",
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
        let env: Vec<_> = env.into_iter().chain(self.settings()).collect();
        let watch = hang::Watch::of(&env);
        let mut gateway = Gateway::start_with(&database, env);
        let watch = watch.map(|watch| watch.over(&gateway, &database));
        let listener = match hears {
            true => Some(gateway.listen(&format!("/api/smart-spaces/{space}/stream")).await),
            false => None,
        };
        let other = match self {
            Self::Queued => Some(say(&mut gateway, world.other_space(), ada, "slow 10").await),
            _ => None,
        };
        let run = if self == Self::Plan {
            self.planned(&mut gateway, world, space).await
        } else {
            say(&mut gateway, space, ada, self.says()).await
        };
        if self == Self::Stop {
            gateway.said("failpoint model.first_byte is passed").await;
            gateway.restart();
        }
        self.follow(&mut gateway, &run).await;
        if let Some(other) = other {
            Self::Text.follow(&mut gateway, &other).await;
            let other = gateway.get(&format!("/api/runs/{other}")).await;
            assert_eq!(other["run"]["status"], "completed", "{other}");
        }
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
        let recorded = recorded.lines().map(str::to_owned);
        let recorded = recorded.chain(far_calls(database.folder.path())).collect();
        let files = match self {
            Self::McpCall | Self::McpRepeatable | Self::McpTask => {
                database.number(&format!("SELECT count(*) FROM files WHERE run = '{run}'"))
            }
            _ => 0,
        };
        let heard = match listener {
            Some(listener) => listener.until_the_end().await,
            None => Vec::new(),
        };
        let mut ended = Ended {
            deaths: gateway.deaths,
            stood: None,
            recovery,
            goals: goals.len(),
            heard,
            log: gateway.log(),
            events: list(&events, "events"),
            runs: list(&runs, "runs"),
            messages: list(&messages, "messages"),
            open_waits: list(&waits, "waits").len(),
            recorded,
            files,
        };
        gateway.stop();
        // A gateway may also stand while it stops.
        ended.stood = watch.and_then(hang::Watching::stop);
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

    /// Does what the story has to do until the run has ended.
    async fn follow(self, gateway: &mut Gateway<'_>, run: &str) {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "{run} does not end\n{}", gateway.log());
            let status = gateway.get(&format!("/api/runs/{run}")).await["run"]["status"].clone();
            match (status.as_str().unwrap(), self) {
                ("completed" | "failed" | "canceled", _) => return,
                ("waiting_tool", Self::Expiry) => {}
                ("waiting_tool", Self::Cancel) => cancel(gateway, run).await,
                ("waiting_tool", _) => {
                    let waits = gateway.get(&format!("/api/waits?runId={run}")).await;
                    for wait in waits["waits"].as_array().unwrap() {
                        answer(gateway, run, wait).await;
                    }
                }
                _ => {}
            }
        }
    }
}

pub(crate) async fn say(gateway: &mut Gateway<'_>, space: &str, who: &str, text: &str) -> String {
    let message = json!({"entityId": who, "content": text});
    let posted = gateway.post(&format!("/api/smart-spaces/{space}/messages"), message).await;
    posted["runs"][0]["runId"].as_str().unwrap().to_owned()
}

/// Asking again changes nothing. After its end a run cannot be stopped.
async fn cancel(gateway: &mut Gateway<'_>, run: &str) {
    let (status, said) =
        gateway.call("POST", &format!("/api/runs/{run}/cancel"), Some(&json!({})), None).await;
    let ended = status == 409 && gateway.deaths > 0;
    assert!(status == 200 || ended, "cancel: {status} {said}");
}

fn armed(failpoint: Option<&str>) -> Vec<(String, String)> {
    failpoint.map(|place| ("TOOLYARD_FAILPOINT".to_owned(), place.to_owned())).into_iter().collect()
}

/// How long a run may take, with a death in between.
const PATIENCE: Duration = Duration::from_secs(60);

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
    // One whose first try was taken before a death is a repeat, and taken again.
    for _ in 0..=usize::from(gateway.deaths > 0) {
        let (status, said) = gateway.call("POST", &path, Some(&body), None).await;
        assert_eq!(status, 200, "{path}: {said}");
    }
}
