//! L31: what tools there are, and how their calls went.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{ask, fine};
use crate::socket::Program;
use crate::yard::Yard;

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}: {list}"))
}

#[tokio::test]
async fn l31_tools_are_listed_with_their_counts() {
    let yard = Yard::new().await;
    let mut config = crate::yard::agent("assistant");
    config["tools"][0]["category"] = json!("people");
    config["tools"][0]["version"] = json!("2.0");
    config["tools"][1]["deprecated"] = json!("use echo");
    yard.gateway.post("/api/agents", json!({"config": config})).await;
    let mut robot = Program::backend(&yard.gateway, "cli_1", &["getUserApproval"]).await;
    for text in ["call look {}", "call getUserApproval {\"q\":5}"] {
        let run = yard.say(text).await;
        yard.finish(&run).await;
    }
    let run = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = robot.call().await;
    robot.answer(&call, json!({"error": "no"})).await;
    yard.finish(&run).await;
    let list = yard.gateway.get("/api/tools?agent=assistant").await;
    assert_eq!(list["agent"], "assistant");
    let asked = named(&list, "getUserApproval");
    assert_eq!(
        (
            &asked["executionTarget"],
            &asked["place"],
            &asked["riskLevel"],
            &asked["category"],
            &asked["version"]
        ),
        (&json!("client"), &json!("client"), &json!("low"), &json!("people"), &json!("2.0"))
    );
    assert_eq!((&asked["connected"], &asked["ifAbsent"]), (&json!(true), &json!("wait")));
    // One refused by its schema, one failed by its program.
    assert_eq!((&asked["uses"]["calls"], &asked["uses"]["failures"]), (&json!(2), &json!(2)));
    let look = named(&list, "look");
    assert_eq!((&look["uses"]["calls"], &look["uses"]["failures"]), (&json!(1), &json!(0)));
    assert_eq!((&look["place"], &look["deprecated"]), (&json!("gateway"), &json!("use echo")));
    assert_eq!(named(&list, "echo")["uses"]["calls"], 0);
    let some = yard.gateway.get("/api/tools?category=people").await;
    assert_eq!(some["tools"].as_array().unwrap().len(), 1, "{some}");

    // A user sees which tools there are, schemas of open ones, and no numbers.
    let mine = fine(yard.gateway.user("ann", Method::GET, "/api/tools")).await;
    let open = mine["tools"].as_array().unwrap().iter().filter(|t| t.get("inputSchema").is_some());
    let names: Vec<_> = open.map(|t| t["name"].clone()).collect();
    assert_eq!(names, ["getUserApproval", "echo", "guarded"]);
    assert_eq!(named(&mine, "echo").get("uses"), None);
    let missing = ask(yard.gateway.secret(Method::GET, "/api/tools?agent=nobody")).await;
    assert_eq!(missing.0, 404);

    let metrics = yard.gateway.bare(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let line = |text: &str| assert!(metrics.contains(text), "{text} is not in\n{metrics}");
    line("toolyard_tool_calls_total{tool=\"look\",place=\"server\",outcome=\"ok\"} 1");
    line("toolyard_tool_calls_total{tool=\"getUserApproval\",place=\"client\",outcome=\"failed\"} 2");
    line("toolyard_tool_seconds_count{tool=\"look\",place=\"server\"} 1");
    line("toolyard_client_sockets 1");
}

#[tokio::test]
async fn l31_names_that_a_model_invents_are_no_labels() {
    let yard = Yard::new().await;
    let run = yard.say("call inventedByTheModel {}").await;
    yard.finish(&run).await;
    let metrics = yard.gateway.bare(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(!metrics.contains("inventedByTheModel"), "{metrics}");
    assert!(metrics.contains("toolyard_tool_calls_total{tool=\"other\""), "{metrics}");
}
