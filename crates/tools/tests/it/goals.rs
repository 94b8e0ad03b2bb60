//! G20 to G23: goals of the agent's entity.

use serde_json::{Value, json};

use crate::home::Home;

async fn set(home: &Home, args: Value) -> Value {
    home.act(&home.anns(), "setGoals", args).await.unwrap()
}

fn names(answer: &Value) -> Vec<&str> {
    let goals = answer["currentGoals"].as_array().unwrap();
    goals.iter().map(|g| g["description"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn g20_goals_are_created_with_defaults_and_g21_answered_in_order() {
    let home = Home::new().await;
    let answer = set(
        &home,
        json!({"goals": [
            {"description": "Learn Rust"},
            {"description": "Ship it", "priority": 5, "isLongTerm": true},
            {"description": "Sleep", "isCompleted": true}]}),
    )
    .await;
    let [rust, ship, sleep] = [0, 1, 2].map(|i| answer["goalsModified"][i]["id"].clone());
    assert_eq!(
        answer,
        json!({
            "success": true,
            "goalsModified": [
                {"action": "created", "id": rust, "description": "Learn Rust"},
                {"action": "created", "id": ship, "description": "Ship it"},
                {"action": "created", "id": sleep, "description": "Sleep"}],
            "currentGoals": [
                {"id": ship, "description": "Ship it", "priority": 5, "isLongTerm": true, "isCompleted": false},
                {"id": rust, "description": "Learn Rust", "priority": 0, "isLongTerm": false, "isCompleted": false},
                {"id": sleep, "description": "Sleep", "priority": 0, "isLongTerm": false, "isCompleted": true}],
            "totalGoals": 3
        })
    );
}

#[tokio::test]
async fn g20_an_update_by_id_keeps_what_it_does_not_name() {
    let home = Home::new().await;
    let made =
        set(&home, json!({"goals": [{"description": "Ship it", "priority": 5, "isLongTerm": true}]})).await;
    let id = made["goalsModified"][0]["id"].clone();
    let answer =
        set(&home, json!({"goals": [{"id": id, "description": "Ship it today", "isCompleted": true}]})).await;
    assert_eq!(
        answer["goalsModified"],
        json!([{"action": "updated", "id": id, "description": "Ship it today"}])
    );
    assert_eq!(
        answer["currentGoals"],
        json!([{"id": id, "description": "Ship it today", "priority": 5, "isLongTerm": true, "isCompleted": true}])
    );
}

#[tokio::test]
async fn g20_a_goal_of_another_entity_is_not_found_and_changes_nothing() {
    let home = Home::new().await;
    let made = set(&home, json!({"goals": [{"description": "Mine", "priority": 2}]})).await;
    let id = made["goalsModified"][0]["id"].clone();
    let mut other = home.anns();
    other.agent_entity = Some(home.other_bot.clone());
    let args = json!({"goals": [{"id": id, "description": "Stolen"}, {"description": "My own"}]});
    let answer = home.act(&other, "setGoals", args).await.unwrap();
    assert_eq!(answer["success"], false);
    assert_eq!(answer["goalsModified"][0], json!({"action": "not_found", "id": id, "description": "Stolen"}));
    assert_eq!(names(&answer), ["My own"]);
    let mine = home.act(&home.anns(), "getGoals", json!({})).await.unwrap();
    assert_eq!(mine["currentGoals"], made["currentGoals"]);
}

#[tokio::test]
async fn g20_a_phrase_names_one_goal_or_is_said_to_be_ambiguous() {
    let home = Home::new().await;
    set(&home, json!({"goals": [{"description": "Write the report"}, {"description": "Write the report again"}, {"description": "Call Bob"}]})).await;
    let done =
        set(&home, json!({"goals": [{"match": "BOB", "description": "Call Bob", "isCompleted": true}]}))
            .await;
    assert_eq!(done["goalsModified"][0]["action"], "updated");
    // The whole description wins over a part of another one.
    let exact = set(
        &home,
        json!({"goals": [{"match": "write the report", "description": "Write the short report"}]}),
    )
    .await;
    assert_eq!(exact["goalsModified"][0]["description"], "Write the short report");
    let vague = set(
        &home,
        json!({"goals": [{"match": "report", "description": "x"}, {"match": "nothing", "description": "y"}]}),
    )
    .await;
    assert_eq!(vague["success"], false);
    assert_eq!(vague["goalsModified"][0]["action"], "ambiguous");
    assert_eq!(vague["goalsModified"][0]["candidates"].as_array().unwrap().len(), 2);
    assert_eq!(vague["goalsModified"][1]["action"], "not_found");
    assert_eq!(names(&vague), ["Write the short report", "Write the report again", "Call Bob"]);
}

#[tokio::test]
async fn g20_clear_existing_keeps_what_the_same_call_names() {
    let home = Home::new().await;
    let made = set(
        &home,
        json!({"goals": [{"description": "one"}, {"description": "two"}, {"description": "three"}]}),
    )
    .await;
    let two = made["goalsModified"][1]["id"].clone();
    let answer = set(&home, json!({"clearExisting": true, "goals": [{"id": two, "description": "two", "priority": 1}, {"description": "four"}]})).await;
    assert_eq!(names(&answer), ["two", "four"]);
    let answer = set(&home, json!({"clearExisting": true, "goals": []})).await;
    assert_eq!((answer["totalGoals"].clone(), answer["success"].clone()), (json!(0), json!(true)));
}

#[tokio::test]
async fn g20_limits_are_told_with_their_numbers_and_change_nothing() {
    let home = Home::new().await;
    let anns = home.anns();
    let many: Vec<_> = (0..50).map(|n| json!({"description": format!("goal {n}")})).collect();
    for _ in 0..4 {
        set(&home, json!({"goals": many})).await;
    }
    let full = home.act(&anns, "setGoals", json!({"goals": [{"description": "one more"}]})).await;
    assert_eq!(full.unwrap_err(), "That makes 201 goals: the limit is 200");
    let long = home.act(&anns, "setGoals", json!({"goals": [{"description": "x".repeat(2001)}]})).await;
    assert_eq!(long.unwrap_err(), "description has 2001 characters: the limit is 2000");
    let empty = home.act(&anns, "setGoals", json!({"goals": [{"description": " "}]})).await;
    assert_eq!(empty.unwrap_err(), "description must not be empty");
    let goals = home.act(&anns, "getGoals", json!({})).await.unwrap();
    assert_eq!(goals["totalGoals"], 200);
    let mut nobody = anns;
    nobody.agent_entity = None;
    assert!(home.act(&nobody, "getGoals", json!({})).await.unwrap_err().contains("no agent entity"));
}

#[tokio::test]
async fn g23_goals_are_read_whole_or_by_what_is_done() {
    let home = Home::new().await;
    set(&home, json!({"goals": [{"description": "open"}, {"description": "done", "isCompleted": true}]}))
        .await;
    let read = async |args| home.act(&home.anns(), "getGoals", args).await.unwrap();
    assert_eq!(names(&read(json!({})).await), ["open", "done"]);
    assert_eq!(names(&read(json!({"isCompleted": false})).await), ["open"]);
    assert_eq!(read(json!({"isCompleted": true})).await["totalGoals"], 1);
}
