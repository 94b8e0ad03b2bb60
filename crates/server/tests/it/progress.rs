//! H66: long client tools tell how far they are. And batches of results.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{ask, message};
use crate::socket::Program;
use crate::yard::{Yard, data, durable};

const TOOL: &str = "getUserApproval";

async fn tell(yard: &Yard, user: Option<&str>, run: &str, body: Value) -> (u16, Value) {
    let path = format!("/api/runs/{run}/tool-progress");
    let request = match user {
        Some(user) => yard.gateway.user(user, Method::POST, &path),
        None => yard.gateway.secret(Method::POST, &path),
    };
    let (status, body) = ask(request.json(&body)).await;
    (status.as_u16(), body)
}

#[tokio::test]
async fn h66_progress_is_an_event_that_readers_see_in_order() {
    let yard = Yard::new().await;
    let mut robot = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = robot.call().await;
    let id = &call["toolCallId"];
    let (status, taken) = tell(
        &yard,
        Some("ann"),
        &run,
        json!({"toolCallId": id, "fraction": 0.25, "message": "a quarter", "preliminary": {"rows": 3}}),
    )
    .await;
    assert_eq!((status, &taken["left"]), (200, &json!(199)), "{taken}");
    assert_eq!(taken.get("claimedUntil"), None);
    let heard =
        robot.ask(json!({"type": "tool.progress", "runId": run, "toolCallId": id, "fraction": 1})).await;
    assert_eq!((&heard["type"], &heard["left"]), (&json!("tool.progress.accepted"), &json!(198)));
    assert!(heard["claimedUntil"].as_str() > call["claimedUntil"].as_str(), "{heard} {call}");
    let claimed = robot.ask(json!({"type": "tool.claim", "runId": run, "toolCallId": id})).await;
    assert_eq!(claimed["type"], "tool.claimed");
    robot.answer(&call, json!("done")).await;
    let events = durable(&yard.finish(&run).await);
    let told: Vec<Value> =
        events.iter().filter(|e| e.event.as_deref() == Some("tool.progress")).map(data).collect();
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&told[0]["fraction"], &told[0]["message"], &told[0]["preliminary"]),
        (&json!(0.25), &json!("a quarter"), &json!({"rows": 3}))
    );
    assert_eq!((&told[1]["fraction"], told[1].get("message")), (&json!(1.0), None));
    // The run is over, and so is its progress.
    let (status, late) = tell(&yard, None, &run, json!({"callId": id, "fraction": 1})).await;
    assert_eq!((status, late["error"]["code"].as_str().unwrap()), (409, "run_ended"));
}

#[tokio::test]
async fn h66_progress_is_bounded_in_size_and_number() {
    let yard = Yard::new().await;
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let id = yard.wait_of(&run).await["toolCallId"].clone();
    let refused = [
        (json!({"toolCallId": id}), 400),
        (json!({"toolCallId": id, "fraction": 1.5}), 400),
        (json!({"toolCallId": id, "fraction": -0.1}), 400),
        (json!({"toolCallId": id, "message": "x".repeat(1001)}), 422),
        (json!({"toolCallId": id, "preliminary": "x".repeat(17 << 10)}), 422),
        (json!({"toolCallId": "call_other", "fraction": 1}), 404),
        (json!({"fraction": 1}), 400),
    ];
    for (body, wanted) in refused {
        let (status, answer) = tell(&yard, None, &run, body.clone()).await;
        assert_eq!(status, wanted, "{body}: {answer}");
    }
    for user in ["bob", "eve"] {
        assert_eq!(tell(&yard, Some(user), &run, json!({"toolCallId": id, "fraction": 1})).await.0, 403);
    }
    for _ in 0..200 {
        let (status, answer) = tell(&yard, None, &run, json!({"toolCallId": id, "fraction": 0.5})).await;
        assert_eq!(status, 200, "{answer}");
    }
    let (status, answer) = tell(&yard, None, &run, json!({"toolCallId": id, "fraction": 0.5})).await;
    assert_eq!((status, &answer["error"]["limit"]), (422, &json!(200)));
    assert!(message(&answer).contains("200"), "{answer}");
    // Nothing refused was logged.
    let mut progressed = 0;
    let mut after = 0;
    loop {
        let list = yard.gateway.get(&format!("/api/runs/{run}/events?limit=200&afterSeq={after}")).await;
        let events = list["events"].as_array().unwrap().clone();
        progressed += events.iter().filter(|e| e["type"] == "tool.progress").count();
        let Some(last) = events.last() else { break };
        after = last["seq"].as_i64().unwrap();
    }
    assert_eq!(progressed, 200);
}

#[tokio::test]
async fn part2_row5_batches_of_results_are_taken_whole_through_every_door() {
    let yard = Yard::new().await;
    let two = "call getUserApproval {\"q\":\"1\"}\ncall getUserApproval {\"q\":\"2\"}";
    let calls = async |run: &str| -> Vec<Value> {
        yard.wait_of(run).await;
        let list = yard.gateway.get(&format!("/api/waits?runId={run}")).await;
        list["waits"].as_array().unwrap().iter().map(|w| w["toolCallId"].clone()).collect()
    };
    let both = |calls: &[Value]| json!([{"toolCallId": calls[0], "result": 1}, {"toolCallId": calls[1], "error": "no"}]);
    // By the run's door, by the space's, by a socket.
    let run = yard.say(two).await;
    let open = calls(&run).await;
    let half = json!([{"toolCallId": open[0], "result": 1}, {"toolCallId": "call_x", "result": 1}]);
    assert_eq!(yard.submit(None, &run, json!({"results": half})).await.0, 404);
    assert_eq!(calls(&run).await.len(), 2, "a batch with a fault changes nothing");
    assert_eq!(yard.submit(Some("ann"), &run, json!({"results": both(&open)})).await.0, 200);
    yard.finish(&run).await;

    let run = yard.say(two).await;
    let open = calls(&run).await;
    let path = format!("/api/smart-spaces/{}/tool-results", yard.space);
    let taken = yard.gateway.post(&path, json!({"runId": run, "results": both(&open)})).await;
    assert_eq!(taken["results"].as_array().unwrap().len(), 2);
    yard.finish(&run).await;

    let mut robot = Program::backend(&yard.gateway, "cli_1", &[TOOL]).await;
    let run = yard.say(two).await;
    let open = [robot.call().await["toolCallId"].clone(), robot.call().await["toolCallId"].clone()];
    let taken = robot.ask(json!({"type": "tool.result", "runId": run, "results": both(&open)})).await;
    assert_eq!(
        (&taken["type"], taken["results"].as_array().unwrap().len()),
        (&json!("tool.result.accepted"), 2)
    );
    yard.finish(&run).await;
}
