//! D7: parallel results may come in any order, over HTTP too.

use serde_json::{Value, json};

use crate::crowd::crowd;
use crate::yard::Yard;

const CALLS: usize = 8;

/// A reproducible shuffle: the seed is in the message of a failure.
fn shuffled(seed: u64) -> Vec<usize> {
    let mut state = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let mut order: Vec<usize> = (0..CALLS).collect();
    for i in (1..CALLS).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let j = usize::try_from(state >> 33).unwrap() % (i + 1);
        order.swap(i, j);
    }
    order
}

#[tokio::test]
async fn d7_each_result_lands_on_its_own_call_and_the_model_reads_them_in_call_order() {
    let yard = Yard::new().await;
    let lines: Vec<String> = (0..CALLS).map(|i| format!("call getUserApproval {{\"q\":\"{i}\"}}")).collect();
    for seed in 0..u64::try_from(crowd(60, 500)).unwrap() {
        let run = yard.say(&lines.join("\n")).await;
        yard.wait_of(&run).await;
        let list = yard.gateway.get(&format!("/api/waits?runId={run}")).await;
        let waits = list["waits"].as_array().unwrap();
        assert_eq!(waits.len(), CALLS);
        let call_of = |q: usize| -> &Value {
            let name = q.to_string();
            let asked = waits.iter().find(|w| w["payload"]["q"] == name.as_str());
            &asked.unwrap_or_else(|| panic!("{list}"))["toolCallId"]
        };
        for q in shuffled(seed) {
            let body = json!({"callId": call_of(q), "result": format!("answer-{q}-")});
            yard.gateway.post(&format!("/api/runs/{run}/tool-results"), body).await;
        }
        yard.finish(&run).await;
        let events = yard.gateway.get(&format!("/api/runs/{run}/events?limit=200")).await;
        let events = events["events"].as_array().unwrap();
        for event in events.iter().filter(|e| e["type"] == "tool-output-available") {
            let q = (0..CALLS).find(|q| *call_of(*q) == event["toolCallId"]).unwrap();
            assert_eq!(event["output"], format!("answer-{q}-"), "seed {seed}");
        }
        let said =
            events.iter().rev().find(|e| e["type"] == "message.assistant").unwrap()["parts"].to_string();
        let places: Vec<_> = (0..CALLS).map(|q| said.find(&format!("answer-{q}-")).unwrap()).collect();
        assert!(places.is_sorted(), "seed {seed}: {said}");
    }
}
