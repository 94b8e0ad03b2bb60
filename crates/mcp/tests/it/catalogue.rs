//! The tools of a server: what the model gets, what is left out, what changes.

use serde_json::json;
use toolyard_mcp::{Pin, Pins};
use toolyard_protocol::risk::Risk;

use crate::yard::{eventually, fault, fault_with};

#[tokio::test]
async fn x4_one_bad_tool_is_left_out_with_a_reason_and_never_the_others() {
    let fault = fault("odd-tools");
    let catalogue = fault.catalogue().await;
    let names: Vec<&str> = catalogue.tools.iter().map(|tool| tool.tool.raw.as_str()).collect();
    let long = "n".repeat(90);
    let expected = [
        "delete_all",
        "fine",
        "hidden",
        "hidden_parameter",
        "long",
        "look",
        &long,
        "odd_hints",
        "weird name/1.x",
        "without_schema",
    ];
    assert_eq!(names, expected);
    let left_out = fault.status().left_out;
    let why = |name: &str| {
        let found = left_out.iter().find(|left| left.name == name);
        found.unwrap_or_else(|| panic!("{name} is not left out: {left_out:?}")).why.clone()
    };
    assert!(why("hidden_key").contains("hidden characters"));
    assert!(why("too_deep").contains("32"), "{}", why("too_deep"));
    assert!(why("far_ref").contains("schema is refused"));
    assert!(why("no_schema_object").contains("schema is refused"));
    assert!(why("huge_schema").contains("65536"), "{}", why("huge_schema"));
    assert!(why("fine").contains("twice"));
    assert_eq!(left_out.len(), 10, "{left_out:?}");
    fault.host.stop().await;
}

/// Text that a person does not see does not reach the model either.
#[tokio::test]
async fn x4_descriptions_are_cleaned_cut_and_marked() {
    let fault = fault("odd-tools");
    let mark = " [altered: hidden or overlong text was removed]";
    let hidden = fault.tool("hidden").await.unwrap();
    assert_eq!(hidden.tool.description, format!("Reads a file .{mark}"));
    let long = fault.tool("long").await.unwrap();
    assert!(long.tool.description.len() <= 8192 && long.tool.description.ends_with(mark));
    let parameter = fault.tool("hidden_parameter").await.unwrap();
    assert_eq!(parameter.tool.input_schema["properties"]["a"]["description"], format!("ab{mark}"));
    let odd = fault.tool("weird name/1.x").await.unwrap();
    assert_eq!(odd.name.as_str(), "mcp_fault_weird_name_1_x");
    fault.host.stop().await;
}

/// Row 25: the hints of a server that nobody vouched for may frighten, and
/// never soothe.
#[tokio::test]
async fn c14_hints_of_untrusted_servers_cannot_lower_a_risk() {
    for (trusted, delete) in [(false, Risk::High), (true, Risk::Low)] {
        let fault = fault_with("odd-tools", json!({ "trusted": trusted }));
        assert_eq!(fault.tool("delete_all").await.unwrap().risk, delete);
        assert_eq!(fault.tool("look").await.unwrap().risk, Risk::High);
        assert_eq!(fault.tool("fine").await.unwrap().risk, Risk::Low);
        fault.host.stop().await;
    }
}

#[tokio::test]
async fn more_tools_than_allowed_are_left_out_with_the_limit() {
    let fault = fault("many");
    assert_eq!(fault.catalogue().await.tools.len(), 512);
    let left_out = fault.status().left_out;
    assert_eq!(left_out.len(), 88);
    assert!(left_out[0].why.contains("512"));
    fault.host.stop().await;
}

/// Row X4: a server that swaps a tool after it was approved is noticed, in
/// both eras, and so is a tool that was not there before.
#[tokio::test]
async fn x4_a_changed_tool_is_not_the_one_that_was_pinned() {
    for mode in ["plain", "modern"] {
        let fault = fault(mode);
        let mut changes = fault.host.changes();
        let first = fault.catalogue().await;
        let pins: Pins = first
            .tools
            .iter()
            .map(|tool| ((tool.server.to_string(), tool.tool.raw.clone()), tool.tool.fingerprint.clone()))
            .collect();
        assert!(first.tools.iter().all(|tool| tool.pin(&pins) == Pin::Same));
        let before = fault.tool("echo").await.unwrap().tool.fingerprint.clone();

        let generation = fault.status().generation;
        fault.call("swap", json!({})).await;
        let change =
            tokio::time::timeout(std::time::Duration::from_secs(20), changes.recv()).await.unwrap().unwrap();
        assert_eq!((change.difference.changed, change.difference.added), (vec!["echo".to_owned()], vec![]));
        assert!(fault.status().generation > generation);
        let echo = fault.tool("echo").await.unwrap();
        assert_eq!(echo.pin(&pins), Pin::Changed { before });
        assert_eq!(echo.tool.description, "Changed!");

        fault.call("grow", json!({})).await;
        eventually("the new tool", || (fault.status().tools > first.tools.len()).then_some(())).await;
        assert_eq!(fault.tool("grown0").await.unwrap().pin(&pins), Pin::New);
        assert_eq!(fault.tool("hang").await.unwrap().pin(&pins), Pin::Same);
        fault.host.stop().await;
    }
}

/// Four notifications in a burst are one new list.
#[tokio::test]
async fn a_burst_of_changes_is_one_list() {
    let fault = fault("plain");
    fault.catalogue().await;
    fault.call("grow", json!({})).await;
    eventually("the new tool", || (fault.status().generation == 2).then_some(())).await;
    fault.call("echo", json!({ "message": "x" })).await;
    assert!(fault.count("list") <= 3, "{:?}", fault.log());
    fault.host.stop().await;
}

#[tokio::test]
async fn arguments_are_checked_by_the_tools_own_schema() {
    let fault = fault("plain");
    let echo = fault.tool("echo").await.unwrap();
    assert!(echo.tool.schema.check(&json!({ "message": "x" })).is_ok());
    assert!(echo.tool.schema.check(&json!({ "message": 7 })).is_err());
    fault.host.stop().await;
}
