//! Prebuilt tools in runs: G15 to G23 and G30 without HTTP.

use serde_json::{Value, json};
use toolyard_protocol::event::Event;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::tool::Place;
use toolyard_protocol::{RunId, ToolOutcome};
use toolyard_runtime::check_agent;

use crate::yard::{Yard, config};

pub(crate) fn prebuilt(action: &str) -> Value {
    json!({"executionType": "prebuilt", "execution": {"action": action}})
}

/// What the calls of a run answered.
pub(crate) async fn outcomes(yard: &Yard, run: &RunId) -> Vec<ToolOutcome> {
    let events = yard.events(run).await;
    let returned = events.into_iter().filter_map(|e| match e {
        Event::ToolReturned(e) => {
            Some(ToolOutcome::from_parts(e.outcome, e.value.into_shown(), e.error.into_shown()))
        }
        _ => None,
    });
    returned.collect()
}

async fn answer(yard: &Yard, text: &str) -> Value {
    let run = yard.say(text).await;
    yard.until(&run, RunStatus::Completed).await;
    match outcomes(yard, &run).await.remove(0) {
        ToolOutcome::Ok(value) => value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn g18_g19_a_prebuilt_call_runs_inline_and_is_logged() {
    let yard = Yard::new(json!([prebuilt("setGoals"), prebuilt("getGoals")])).await;
    let run = yard.say("call setGoals {\"goals\":[{\"description\":\"Ship\",\"priority\":3}]}").await;
    yard.until(&run, RunStatus::Completed).await;
    let kinds = yard.kinds(&run).await;
    let wanted = [
        "RunCreated",
        "RunStarted",
        "ModelReplied",
        "ToolCallRequested",
        "ToolReturned",
        "ModelReplied",
        "RunFinished",
    ];
    assert_eq!(kinds, wanted);
    let requested = yard.events(&run).await.into_iter().find_map(|e| match e {
        Event::ToolCallRequested(call) => Some(call),
        _ => None,
    });
    assert_eq!(requested.unwrap().place, Place::Gateway);
    // G22: another run in another space finds what this one left.
    let mut yard = yard;
    yard.another_space().await;
    let goals = answer(&yard, "call getGoals {}").await;
    assert_eq!(goals["currentGoals"][0]["description"], "Ship");
}

#[tokio::test]
async fn a_refused_call_changes_nothing_and_the_run_goes_on() {
    let yard = Yard::new(json!([prebuilt("setGoals"), prebuilt("getGoals")])).await;
    let long = "x".repeat(3000);
    let text =
        format!("call setGoals {{\"goals\":[{{\"description\":\"good\"}},{{\"description\":\"{long}\"}}]}}");
    let run = yard.say(&text).await;
    yard.until(&run, RunStatus::Completed).await;
    let told = outcomes(&yard, &run).await;
    let wanted = "description has 3000 characters: the limit is 2000".to_owned();
    assert_eq!(told, [ToolOutcome::Failed(wanted)]);
    assert_eq!(answer(&yard, "call getGoals {}").await["totalGoals"], 0);
}

#[tokio::test]
async fn several_calls_of_one_reply_each_happen_once() {
    let yard = Yard::new(json!([prebuilt("setGoals"), prebuilt("getGoals")])).await;
    let line = |n: u32| format!("call setGoals {{\"goals\":[{{\"description\":\"goal {n}\"}}]}}");
    let run = yard.say(&(1..=5).map(line).collect::<Vec<_>>().join("\n")).await;
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(outcomes(&yard, &run).await.len(), 5);
    assert_eq!(answer(&yard, "call getGoals {}").await["totalGoals"], 5);
}

#[tokio::test]
async fn x15_what_ada_told_is_not_told_to_bob() {
    let yard = Yard::new(json!([prebuilt("setMemory"), prebuilt("getMemory")])).await;
    answer(&yard, "call setMemory {\"topic\":\"salary\",\"content\":\"canary\"}").await;
    assert_eq!(answer(&yard, "call getMemory {}").await["memories"][0]["content"], "canary");
    let run = yard.post(&yard.bob, "call getMemory {}").await.runs[0].run.clone().unwrap();
    yard.until(&run, RunStatus::Completed).await;
    assert_eq!(
        outcomes(&yard, &run).await,
        [ToolOutcome::Ok(json!({"success": true, "memories": [], "total": 0}))]
    );
}

#[test]
fn g15_g17_configurations_are_checked_when_they_are_stored() {
    let told = |tools: Value, extra: Value| check_agent(&config(tools, extra)).map_err(|e| e.message);
    let agent = told(json!([prebuilt("setGoals")]), json!({})).unwrap();
    let spec = agent.tools.set.find("setGoals").unwrap();
    assert!(spec.description.starts_with("Create, update or complete your goals"));
    assert_eq!(spec.input_schema["required"], json!(["goals"]));
    let unknown = told(json!([prebuilt("makeCoffee")]), json!({})).unwrap_err();
    assert_eq!(unknown, "Invalid agent config: tools[0]: Unknown prebuilt tool: makeCoffee");
    let all = told(json!([]), json!({"prebuilt": "all"})).unwrap();
    for name in ["setGoals", "getMemory", "createPlan", "searchKnowledge", "requestInput"] {
        assert!(
            all.tools.set.find(name).is_some() && all.tools.offered.iter().any(|t| t.name == name),
            "{name}"
        );
    }
    assert!(told(json!([]), json!({"prebuilt": "some"})).is_err());
    let taken = told(json!([{"name": "setGoals", "description": "A client's"}]), json!({"prebuilt": "all"}));
    assert!(taken.unwrap_err().contains("prebuilt: another tool has the name setGoals"));
}
