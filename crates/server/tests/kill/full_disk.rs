//! D12: a full disk refuses writes with a code and changes nothing. Reads and
//! streams go on, and so does everything else when there is room again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::database::Database;
use crate::gateway::{Gateway, forget_binary};
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);

async fn listed(gateway: &mut Gateway<'_>, space: &str) -> Vec<Value> {
    let path = format!("/api/smart-spaces/{space}/messages?limit=200");
    gateway.get(&path).await["messages"].as_array().unwrap().clone()
}

async fn status(gateway: &mut Gateway<'_>, run: &str) -> Value {
    gateway.get(&format!("/api/runs/{run}")).await["run"]["status"].clone()
}

async fn until_completed(gateway: &mut Gateway<'_>, run: &str) {
    let started = Instant::now();
    while status(gateway, run).await != "completed" {
        assert!(started.elapsed() < PATIENCE, "{run} does not end\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn d12_a_full_disk_refuses_writes_whole_and_serves_reads_until_there_is_room() {
    let world = World::with_spaces(Database::sqlite(), 3).await;
    let pages = world.database.folder.path().join("pages");
    // A plan that never comes true: it makes the gateway say which places it passes.
    let env =
        [("TOOLYARD_SQLITE_PAGES", pages.to_str().unwrap()), ("TOOLYARD_FAILPOINT", "migrate.mid:kill:99")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut gateway = Gateway::start_with(&world.database, env);
    let path = |space: usize| format!("/api/smart-spaces/{}/messages", world.spaces[space]);
    let say = |text: &str| json!({"entityId": world.ada, "content": text});

    let done = gateway.post(&path(0), say("say all is well")).await;
    let done = done["runs"][0]["runId"].as_str().unwrap().to_owned();
    until_completed(&mut gateway, &done).await;
    // A reply that needs pages of its own, as it ends when there are none.
    let slow = format!("slow 40\nsay {}", "x".repeat(20_000));
    let slow = gateway.post(&path(1), say(&slow)).await;
    let slow = slow["runs"][0]["runId"].as_str().unwrap().to_owned();

    // The disk fills up. What is left in the last pages is used first.
    std::fs::write(&pages, "1").unwrap();
    let long = json!({"entityId": world.ada, "content": "x".repeat(20_000), "triggerAgents": false});
    let mut taken = 0;
    let (key, refusal) = loop {
        let key = format!("message-{taken}");
        match gateway.once("POST", &path(2), Some(&long), Some(&key)).await.unwrap() {
            (201, _) if taken < 20 => taken += 1,
            refused => break (key, refused),
        }
    };
    assert_eq!((refusal.0, &refusal.1["error"]["code"]), (503, &json!("store_full")), "{refusal:?}");
    let text = refusal.1["error"]["message"].as_str().unwrap();
    assert!(text.contains("no room left") && text.contains("Nothing was changed"), "{text}");

    // Reads, replays and health go on; nothing of the refused request is there.
    assert_eq!(listed(&mut gateway, &world.spaces[2]).await.len(), taken);
    assert_eq!(listed(&mut gateway, &world.spaces[0]).await.len(), 2);
    for path in ["/health", "/ready", "/metrics"] {
        assert_eq!(gateway.once("GET", path, None, None).await.unwrap().0, 200, "{path}");
    }
    let heard = gateway.listen(&format!("/api/runs/{done}/stream")).await.until_the_end().await;
    assert_eq!(heard.last().unwrap().0, "run.completed", "{heard:?}");

    // The run that was speaking has said all it had to say, was refused, keeps it
    // and tries again: two tries after the one of the run before.
    let started = Instant::now();
    while gateway.log().matches("failpoint finish.before_commit is passed").count() < 3 {
        assert!(started.elapsed() < PATIENCE, "{slow} never says all\n{}", gateway.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status(&mut gateway, &slow).await, "running", "{}", gateway.log());
    assert_eq!(listed(&mut gateway, &world.spaces[1]).await.len(), 1, "no half of its reply");
    assert_eq!(gateway.deaths, 0);

    // Room again: everything goes on by itself, without a restart.
    std::fs::remove_file(&pages).unwrap();
    until_completed(&mut gateway, &slow).await;
    let events = gateway.get(&format!("/api/runs/{slow}/events?limit=200")).await;
    let events = events["events"].as_array().unwrap().clone();
    let seqs: Vec<_> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=u64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>());
    assert!(events.iter().all(|e| e["type"] != "step.restarted"), "its words are not said twice");
    let (status, _) = gateway.once("POST", &path(2), Some(&long), Some(&key)).await.unwrap();
    assert_eq!(status, 201);
    assert_eq!(listed(&mut gateway, &world.spaces[2]).await.len(), taken + 1);
    assert_eq!(gateway.deaths, 0);
    forget_binary();
}
