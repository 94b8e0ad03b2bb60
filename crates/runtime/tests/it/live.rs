//! Programs that are connected to a node, by the time of the database.

use std::time::Duration;

use serde_json::json;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{ClientId, Timestamp, ToolName, limits};
use toolyard_runtime::{Connected, LiveNews, OfferedCall, ProgressIn, Worked};
use toolyard_store::clients::Client;

use crate::yard::{Yard, client_tool};

async fn program(yard: &Yard, name: &str) -> Connected {
    let new = Client {
        id: client(name),
        entity: None,
        kind: "robot".to_owned(),
        name: None,
        capabilities: None,
        last_seen: Timestamp::default(),
    };
    yard.rt.connect(&yard.secret(), new, vec![ToolName::parse("wave").unwrap()]).await.unwrap()
}

async fn news(program: &mut Connected) -> LiveNews {
    let heard = tokio::time::timeout(Duration::from_secs(30), program.news()).await;
    heard.expect("no news").expect("a seat")
}

async fn offered(program: &mut Connected) -> OfferedCall {
    match news(program).await {
        LiveNews::Call(call) => *call,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn g48_a_call_goes_to_the_next_program_when_its_claim_lapses_and_progress_keeps_it() {
    let (yard, clock) = Yard::by_hand(json!([client_tool("wave")])).await;
    let mut first = program(&yard, "cli_1").await;
    let run = yard.say("call wave {}").await;
    let call = offered(&mut first).await.row.wait;
    let mut second = program(&yard, "cli_2").await;
    let claim = i64::try_from(limits::CLAIM_SECONDS).unwrap() * 1000;
    // A word of progress within the minute gives it another one.
    clock.advance(claim - 1);
    let half = ProgressIn { fraction: Some(0.5), message: None, preliminary: None };
    let by = Worked { client: client("cli_1"), connection: Some(first.connection().clone()) };
    yard.rt.progress(yard.caller(), run.clone(), call.call.clone(), half, Some(by)).await.unwrap();
    clock.advance(claim - 1);
    let held = yard.open_waits(&run).await.remove(0);
    assert_eq!(held.wait.claim.map(|(by, _)| by), Some(client("cli_1")));
    // Then it says nothing for too long: somebody else is asked.
    clock.advance(2);
    let again = offered(&mut second).await.row.wait;
    assert_eq!((again.call.clone(), again.run), (call.call.clone(), run.clone()));
    let held = yard.open_waits(&run).await.remove(0);
    assert_eq!(held.wait.claim.map(|(by, _)| by), Some(client("cli_2")));
    // Whoever is first counts, and the other one hears of it.
    yard.submit(&run, &call.call, json!("waved")).await.unwrap();
    yard.until(&run, RunStatus::Completed).await;
    for program in [&mut first, &mut second] {
        let ended = news(program).await;
        assert!(matches!(&ended, LiveNews::Ended { call: of, .. } if *of == call.call), "{ended:?}");
    }
}

fn client(name: &str) -> ClientId {
    ClientId::parse(name).unwrap()
}
