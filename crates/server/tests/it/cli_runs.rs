//! `toolyard run` with real runs: through a gateway, and on its database.

use serde_json::{Value, json};

use crate::gateway::{Folder, toolyard};
use crate::yard::{Yard, eventually};

fn run(folder: &Folder, args: &[&str]) -> (bool, String, String) {
    let output = toolyard(folder.path()).arg("run").args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn good(folder: &Folder, args: &[&str]) -> String {
    let (fine, out, err) = run(folder, args);
    assert!(fine, "{args:?}: {err}");
    out
}

fn value(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_str(&good(folder, args)).unwrap()
}

/// The kinds of a shown run's events.
fn types(shown: &Value) -> Vec<String> {
    let events = shown["events"].as_array().unwrap().iter();
    events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn runs_are_listed_shown_canceled_and_replayed_from_the_command_line() {
    let yard = Yard::new().await;
    let done = yard.say("say hello").await;
    yard.finish(&done).await;
    let waiting = yard.say("call getUserApproval {}").await;
    yard.wait_of(&waiting).await;
    let folder = &yard.gateway.folder;

    let list = value(folder, &["list", "--json"]);
    let ids: Vec<_> = list["runs"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&waiting, &done], "newest first");
    let table = good(folder, &["list"]);
    assert!(
        table.contains(&waiting) && table.contains("waiting_tool") && table.contains("completed"),
        "{table}"
    );
    let shown = value(folder, &["show", &done]);
    assert_eq!(shown["run"]["status"], "completed");
    assert_eq!(types(&shown).last().unwrap(), "run.completed");

    let canceled = value(folder, &["cancel", &waiting, "--json"]);
    assert_eq!(canceled["canceling"], true, "{canceled}");
    eventually("the run is canceled", async || {
        yard.gateway.get(&format!("/api/runs/{waiting}")).await["run"]["status"] == "canceled"
    })
    .await;
    let (fine, _, said) = run(folder, &["cancel", &waiting]);
    assert!(!fine && said.starts_with("toolyard: ") && said.lines().count() == 1, "{said}");

    let again = good(folder, &["replay", &done, "--step", "1"]).trim().to_owned();
    assert_ne!(again, done);
    yard.finish(&again).await;
    assert_eq!(value(folder, &["show", &again])["run"]["status"], "completed");

    // The same without a gateway, but for what needs one.
    let before = (good(folder, &["list"]), shown);
    let (status, _, folder) = yard.gateway.terminate();
    assert!(status.success());
    assert_eq!(good(&folder, &["list"]), before.0);
    assert_eq!(value(&folder, &["show", &done])["events"], before.1["events"]);
    for args in [["cancel", &waiting], ["replay", &done]] {
        let (fine, _, said) = run(&folder, &args);
        let wanted = "toolyard: no gateway runs: start one to cancel or replay a run\n";
        assert_eq!((fine, said.as_str()), (false, wanted), "{args:?}");
    }
    let help = good(&folder, &["--help"]);
    for word in ["list", "show", "cancel", "replay"] {
        assert!(help.contains(word), "{help}");
    }
    let help = String::from_utf8(toolyard(folder.path()).arg("--help").output().unwrap().stdout).unwrap();
    assert!(help.contains("Runs: list, show, cancel, replay"), "{help}");
    assert_eq!(before.1["run"]["errorCode"], json!(null));
}
