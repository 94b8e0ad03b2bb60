//! What the clients do: one story after the other, each with a run.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::client::PATIENCE;
use super::storm::rest;
use super::{Yard, now_ms, readers};
use crate::dice::Dice;
use crate::history::{Nature, Record};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    Text,
    ClientTool,
    GatewayTool,
    Approval,
    Timers,
    Plans,
    Prebuilt,
    Cancel,
    /// All of them, and several kinds of calls in one step.
    Mixed,
}

const SINGLE: [Scenario; 8] = [
    Scenario::Text,
    Scenario::ClientTool,
    Scenario::GatewayTool,
    Scenario::Approval,
    Scenario::Timers,
    Scenario::Plans,
    Scenario::Prebuilt,
    Scenario::Cancel,
];

/// Who there is.
#[derive(Debug, Clone)]
pub(super) struct Cast {
    ada: String,
    bot: String,
    /// One space for each player: its stories follow one another.
    pub(super) spaces: Vec<String>,
}

const TOOLS: [(&str, Nature); 6] = [
    ("screen", Nature::Client),
    ("send", Nature::Outside),
    ("send_safely", Nature::Repeatable),
    ("send_if_allowed", Nature::Outside),
    ("rest", Nature::Timer),
    ("setGoals", Nature::Prebuilt),
];

/// Makes the agent, a person and the spaces.
pub(super) async fn cast(yard: &Yard) -> Cast {
    let mut dice = Dice::new(0);
    let far = format!("http://{}/do", yard.far_side.address);
    let send = |name: &str, more: Value| {
        let mut tool = json!({
            "name": name, "description": "Does something far away", "executionType": "request",
            "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}},
            "execution": {"url": far, "method": "POST", "body": {"what": "{{what}}"}, "timeout": 20_000},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            tool[key] = value.clone();
        }
        tool
    };
    let config = json!({
        "agent": {"name": "bot"},
        "model": {"provider": "demo", "name": "demo"},
        "tools": [
            {"name": "screen", "description": "On a client"},
            send("send", json!({})),
            send("send_safely", json!({"idempotent": true})),
            send("send_if_allowed", json!({"approval": "ask"})),
            {"name": "rest", "executionType": "waiting", "execution": {}},
            {"executionType": "prebuilt", "execution": {"action": "setGoals"}},
        ],
    });
    yard.post(&mut dice, "/api/agents", &json!({"config": config})).await;
    let id = |value: Value, name: &str| value[name]["id"].as_str().unwrap_or_default().to_owned();
    let ada = id(yard.post(&mut dice, "/api/entities", &json!({"type": "human"})).await, "entity");
    let bot = id(yard.post(&mut dice, "/api/entities/agent", &json!({"agentId": "bot"})).await, "entity");
    let mut spaces = Vec::new();
    for _ in 0..yard.plan.players {
        let space = id(yard.post(&mut dice, "/api/smart-spaces", &json!({})).await, "smartSpace");
        for entity in [&ada, &bot] {
            let path = format!("/api/smart-spaces/{space}/members");
            yard.post(&mut dice, &path, &json!({"entityId": entity})).await;
        }
        spaces.push(space);
    }
    for (name, nature) in TOOLS {
        yard.note(Record::Tool { name: name.to_owned(), nature });
    }
    Cast { ada, bot, spaces }
}

/// Plays stories until the storm is over.
pub(super) async fn player(yard: Arc<Yard>, cast: Cast, number: usize, mut dice: Dice) {
    let mut story = 0;
    while !yard.is_calm() {
        story += 1;
        let scenario = match yard.plan.scenario {
            Scenario::Mixed if dice.chance(70) => SINGLE[dice.below(SINGLE.len())],
            other => other,
        };
        let key = format!("seed-{}-player-{number}-story-{story}", yard.plan.seed);
        tell(&yard, &cast, number, scenario, &key, &mut dice).await;
    }
}

async fn tell(yard: &Arc<Yard>, cast: &Cast, number: usize, scenario: Scenario, key: &str, dice: &mut Dice) {
    let space = &cast.spaces[number];
    let run = match scenario {
        Scenario::Plans => planned(yard, cast, space, key, dice).await,
        _ => said(yard, cast, space, &says(scenario, key, dice), key, dice).await,
    };
    let Some(run) = run else { return };
    let reader = dice.chance(50).then(|| {
        let follow = readers::follow(yard.clone(), format!("reader of {key}"), run.clone(), dice.fork());
        tokio::spawn(follow)
    });
    if scenario == Scenario::Cancel {
        cancel(yard, &run, dice).await;
    }
    finish(yard, &run, dice).await;
    if scenario == Scenario::Prebuilt {
        count_goals(yard, &run, key, dice).await;
    }
    if let Some(reader) = reader {
        reader.await.expect("a reader");
    }
}

fn says(scenario: Scenario, key: &str, dice: &mut Dice) -> String {
    let call = |tool: &str| match tool {
        "rest" => "call rest {\"seconds\":1}".to_owned(),
        "screen" => "call screen {}".to_owned(),
        other => format!("call {other} {{\"what\":\"{key}\"}}"),
    };
    match scenario {
        Scenario::Text => if dice.chance(50) { "say all is well" } else { "slow 10" }.to_owned(),
        Scenario::ClientTool => {
            (0..dice.between(1, 3)).map(|_| call("screen")).collect::<Vec<_>>().join("\n")
        }
        Scenario::GatewayTool => call(if dice.chance(60) { "send" } else { "send_safely" }),
        Scenario::Approval => call("send_if_allowed"),
        Scenario::Timers => call("rest"),
        Scenario::Plans => "say it is time".to_owned(),
        Scenario::Prebuilt => format!("call setGoals {{\"goals\":[{{\"description\":\"{key}\"}}]}}"),
        Scenario::Cancel => {
            if dice.chance(50) {
                "slow 200".to_owned()
            } else {
                call("screen")
            }
        }
        Scenario::Mixed => {
            let tools = ["screen", "send", "send_safely", "send_if_allowed", "rest"];
            let calls = (0..dice.between(2, 4)).map(|_| call(tools[dice.below(tools.len())]));
            calls.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A message, which makes a run; now and then the same request twice.
async fn said(
    yard: &Yard,
    cast: &Cast,
    space: &str,
    text: &str,
    key: &str,
    dice: &mut Dice,
) -> Option<String> {
    let (path, body) =
        (format!("/api/smart-spaces/{space}/messages"), json!({"entityId": cast.ada, "content": text}));
    let mut run = None;
    for _ in 0..=usize::from(dice.chance(15)) {
        let (status, answer) = yard.ask(dice, "POST", &path, Some(&body), Some(key)).await?;
        assert!(status < 300, "{path}: {status} {answer}\n{}", yard.logs());
        let made = answer["runs"][0]["runId"].as_str().unwrap_or_default().to_owned();
        yard.note(Record::Made { key: key.to_owned(), run: made.clone() });
        run = Some(made);
    }
    run
}

async fn planned(yard: &Yard, cast: &Cast, space: &str, key: &str, dice: &mut Dice) -> Option<String> {
    let soon = toolyard_protocol::Timestamp::from_millis(now_ms() + 500);
    let plan = json!({
        "agentEntityId": cast.bot, "entityId": cast.ada, "smartSpaceId": space,
        "instruction": "say it is time", "scheduledAt": soon,
    });
    let (status, made) = yard.ask(dice, "POST", "/api/plans", Some(&plan), Some(key)).await?;
    assert!(status < 300, "/api/plans: {status} {made}\n{}", yard.logs());
    let path = format!("/api/plans/{}", made["plan"]["id"].as_str().unwrap_or_default());
    let started = Instant::now();
    loop {
        let plan = yard.get(dice, &path).await["plan"].clone();
        if let Some(run) = plan["lastRunId"].as_str() {
            let count = usize::try_from(plan["runs"].as_u64().unwrap_or(0)).unwrap_or(0);
            yard.note(Record::Kept { mark: format!("the run of plan {key}"), count, wanted: 1 });
            yard.note(Record::Made { key: key.to_owned(), run: run.to_owned() });
            return Some(run.to_owned());
        }
        if yard.quiet() > PATIENCE && started.elapsed() > PATIENCE {
            yard.note(Record::Stuck { run: key.to_owned(), why: format!("the plan never starts: {plan}") });
            return None;
        }
        rest(30).await;
    }
}

async fn cancel(yard: &Yard, run: &str, dice: &mut Dice) {
    rest(dice.between(0, 200)).await;
    for _ in 0..2 {
        let path = format!("/api/runs/{run}/cancel");
        if let Some((status, _)) = yard.ask(dice, "POST", &path, Some(&json!({})), None).await {
            yard.note(Record::Canceled { run: run.to_owned(), status });
        }
    }
}

/// Answers whatever the run waits for until it has ended.
async fn finish(yard: &Yard, run: &str, dice: &mut Dice) {
    let started = Instant::now();
    loop {
        let row = yard.get(dice, &format!("/api/runs/{run}")).await["run"].clone();
        let status = row["status"].as_str().unwrap_or_default();
        if matches!(status, "completed" | "failed" | "canceled") {
            return;
        }
        if yard.quiet() > PATIENCE && started.elapsed() > PATIENCE {
            yard.note(Record::Stuck { run: run.to_owned(), why: format!("it stays {status}") });
            return;
        }
        let waits = yard.get(dice, &format!("/api/waits?runId={run}")).await["waits"].clone();
        for wait in waits.as_array().into_iter().flatten() {
            answer(yard, run, wait, dice).await;
        }
        rest(20).await;
    }
}

async fn answer(yard: &Yard, run: &str, wait: &Value, dice: &mut Dice) {
    let (id, call) = (text(wait, "id"), text(wait, "toolCallId"));
    match wait["kind"].as_str() {
        Some("client") => {
            let path = format!("/api/runs/{run}/tool-results");
            // The same again, and now and then another one, which must not count.
            let own = json!({"seen": call});
            let mut values = vec![own.clone()];
            values.extend(dice.chance(20).then(|| own.clone()));
            values.extend(dice.chance(10).then(|| json!({"seen": "something else"})));
            for value in values {
                let body = json!({"callId": call, "result": value});
                if let Some((status, _)) = yard.ask(dice, "POST", &path, Some(&body), None).await {
                    let (run, call) = (run.to_owned(), call.to_owned());
                    yard.note(Record::Handed { run, call, value, status });
                }
            }
        }
        Some("approval") => {
            let allow = !dice.chance(25);
            let body = json!({"decision": if allow { "allow" } else { "deny" }});
            let path = format!("/api/waits/{id}/answer");
            if let Some((status, _)) = yard.ask(dice, "POST", &path, Some(&body), None).await {
                yard.note(Record::Decided { run: run.to_owned(), call: call.to_owned(), allow, status });
            }
        }
        _ => {}
    }
}

/// A prebuilt tool that ended ok made its goal once; one that was cut off, never.
async fn count_goals(yard: &Yard, run: &str, key: &str, dice: &mut Dice) {
    let events = yard.get(dice, &format!("/api/runs/{run}/events?limit=200")).await;
    let ok = |e: &Value| e["type"] == "tool-output-available" && e["toolName"] == "setGoals";
    let wanted = events["events"].as_array().into_iter().flatten().filter(|e| ok(e)).count();
    let goals = yard.get(dice, "/api/goals?limit=200").await;
    let goals = goals["goals"].as_array().into_iter().flatten().filter(|goal| goal["description"] == key);
    let goals: Vec<String> = goals.map(|goal| text(goal, "id").to_owned()).collect();
    yard.note(Record::Kept { mark: format!("the goal of {key}"), count: goals.len(), wanted });
    for goal in goals {
        yard.ask(dice, "DELETE", &format!("/api/goals/{goal}"), None, None).await;
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
