//! Calls that go well, calls that go wrong, and what the caller hears of it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_mcp::{Block, Outcome, Progress};

use crate::yard::{call, done, eventually, fault, fault_with, owner, text};

#[tokio::test]
async fn a_call_is_made_once_and_its_answer_comes_back() {
    let fault = fault("plain");
    assert_eq!(text(fault.call("echo", json!({ "message": "hello" })).await), "hello");
    assert_eq!(fault.count("call"), 1);
    fault.host.stop().await;
}

#[tokio::test]
async fn g4_two_hundred_calls_at_once_each_get_their_own_answer() {
    let fault = fault("plain");
    let one = &fault;
    let calls =
        (0..200).map(|i| async move { text(one.call("echo", json!({ "message": i.to_string() })).await) });
    let answers = futures::future::join_all(calls).await;
    let expected: Vec<String> = (0..200).map(|i| i.to_string()).collect();
    assert_eq!(answers, expected);
    fault.host.stop().await;
}

#[tokio::test]
async fn nothing_of_an_odd_result_is_lost() {
    let fault = fault("plain");
    let answer = done(fault.call("unknown_block", json!({})).await);
    assert_eq!(answer.blocks[1], Block::Unknown(json!({ "type": "hologram", "depth": 3 })));
    assert_eq!(text(fault.call("bad_audience", json!({})).await), "heard");
    assert_eq!(text(fault.call("bare_link", json!({})).await), "[link file:///tmp/x]");
    // What the protocol does not know is kept beside what it knows.
    let rich = done(fault.call("rich", json!({})).await);
    let block = json!({ "type": "text", "text": "t", "vendor": { "a": 1 } });
    assert_eq!(rich.raw, json!({ "content": [block], "vendor": [1], "structuredContent": [null] }));
    let soft = done(fault.call("soft_error", json!({})).await);
    assert_eq!((soft.is_error, soft.for_model()), (false, "Error: no such table".to_owned()));
    let odd = done(fault.call("not_a_result", json!({})).await);
    assert_eq!((odd.malformed, odd.raw), (true, json!(["just", "a", "list"])));
    fault.host.stop().await;
}

#[tokio::test]
async fn an_error_of_the_server_is_told_and_an_unknown_tool_reads_the_list_again() {
    let fault = fault("plain");
    let refused = fault.call("error", json!({})).await;
    assert_eq!(
        refused,
        Outcome::Failed("MCP server fault answered with error -32050: I will not".to_owned())
    );
    let lists = fault.count("list");
    let unknown = fault.call("nobody", json!({})).await;
    assert!(matches!(&unknown, Outcome::Failed(why) if why.contains("-32602")), "{unknown:?}");
    eventually("a new list", || (fault.count("list") > lists).then_some(())).await;
    fault.host.stop().await;
}

/// An answer above the limit ends its own call at once, not at the time-out,
/// and no other call notices.
#[tokio::test]
async fn a_huge_answer_ends_its_call_with_the_limit_in_the_text() {
    let fault = fault("plain");
    let start = Instant::now();
    let (big, small) = tokio::join!(
        fault.call("big", json!({ "bytes": 20_000_000 })),
        fault.call("echo", json!({ "message": "here" }))
    );
    assert!(matches!(&big, Outcome::Failed(why) if why.contains("larger than 4194304 bytes")), "{big:?}");
    assert_eq!(text(small), "here");
    assert!(start.elapsed() < Duration::from_secs(15));
    assert_eq!(text(fault.call("big", json!({ "bytes": 1_000_000 })).await).len(), 1_000_000);
    let deep = fault.call("deep", json!({})).await;
    assert!(matches!(&deep, Outcome::Failed(why) if why.contains("not JSON-RPC")), "{deep:?}");
    fault.host.stop().await;
}

#[tokio::test]
async fn a_silent_server_ends_the_call_as_unknown_and_is_told() {
    let fault = fault_with("plain", json!({ "tool_timeout_sec": 0.3 }));
    fault.catalogue().await;
    let silent = fault.call("hang", json!({})).await;
    assert!(
        matches!(&silent, Outcome::Unknown(why) if why.contains("no word from it within 300ms")),
        "{silent:?}"
    );
    eventually("the cancellation", || (fault.count("cancelled") == 1).then_some(())).await;
    // The program is not blamed for one slow tool.
    assert_eq!(text(fault.call("echo", json!({ "message": "still here" })).await), "still here");
    assert_eq!(fault.count("start"), 1);
    fault.host.stop().await;
}

#[tokio::test]
async fn progress_is_heard_and_resets_the_idle_time_but_not_the_total() {
    let fault = fault_with("plain", json!({ "tool_timeout_sec": 0.6, "total_timeout_sec": 3 }));
    let heard: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let mut steps = call("steps", json!({ "steps": 6, "pause": 0.25 }));
    let sink = Arc::clone(&heard);
    steps.progress = Some(Arc::new(move |progress| sink.lock().unwrap().push(progress)));
    assert_eq!(text(fault.host.call(&owner("a"), &fault.settings, steps).await), "all steps done");
    let heard = heard.lock().unwrap().clone();
    assert_eq!(
        heard.first().unwrap(),
        &Progress { progress: 1.0, total: Some(6.0), message: Some("step 1".to_owned()) }
    );
    assert!(heard.len() >= 4, "{heard:?}");
    let endless = fault.call("steps", json!({ "steps": 1000, "pause": 0.25 })).await;
    assert!(
        matches!(&endless, Outcome::Unknown(why) if why.contains("no answer from it within 3s")),
        "{endless:?}"
    );
    assert_eq!(text(fault.call("late_progress", json!({})).await), "done");
    assert_eq!(text(fault.call("noise", json!({})).await), "after the noise");
    fault.host.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_and_a_forgotten_one_are_both_told_to_the_server() {
    let fault = fault("plain");
    fault.catalogue().await;
    let hang = call("hang", json!({}));
    let cancel = hang.cancel.clone();
    let me = owner("a");
    let (outcome, ()) = tokio::join!(fault.host.call(&me, &fault.settings, hang), async {
        eventually("the call", || (fault.count("call") == 1).then_some(())).await;
        cancel.cancel();
    });
    assert_eq!(outcome, Outcome::Canceled);
    eventually("the cancellation", || (fault.count("cancelled") == 1).then_some(())).await;
    {
        let forgotten = fault.call("hang", json!({}));
        let mut forgotten = Box::pin(forgotten);
        tokio::select! {
            _ = &mut forgotten => panic!("it hangs"),
            () = eventually("the call", || (fault.count("call") == 2).then_some(())) => {}
        }
    }
    eventually("the second cancellation", || (fault.count("cancelled") == 2).then_some(())).await;
    fault.host.stop().await;
}

/// A server that dies in the middle of a call may have done it: the caller is
/// told so, and the call is not made again.
#[tokio::test]
async fn a_call_that_dies_with_its_server_is_unknown_and_never_repeated() {
    let fault = fault("plain");
    let lost = fault.call("die", json!({})).await;
    assert!(
        matches!(&lost, Outcome::Unknown(why) if why.contains("may or may not have taken effect")),
        "{lost:?}"
    );
    assert_eq!(fault.log().iter().filter(|line| line[1] == "die").count(), 1);
    // The server is started again, and the next call works.
    assert_eq!(text(fault.call("echo", json!({ "message": "back" })).await), "back");
    assert_eq!((fault.count("start"), fault.status().restarts), (2, 1));
    fault.host.stop().await;
}

/// Only a trusted server's word that a repeat is harmless makes one.
#[tokio::test]
async fn only_a_harmless_tool_of_a_trusted_server_is_repeated() {
    for (trusted, times) in [(false, 1), (true, 2)] {
        let fault = fault_with("plain", json!({ "trusted": trusted }));
        let tool = fault.tool("die").await.unwrap();
        let mut again = call("die", json!({}));
        again.repeats_safely = tool.repeats_safely();
        let outcome = fault.host.call(&owner("a"), &fault.settings, again).await;
        assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
        assert_eq!(fault.log().iter().filter(|line| line[1] == "die").count(), times);
        fault.host.stop().await;
    }
}

#[tokio::test]
async fn a_tool_that_is_not_allowed_is_not_sent() {
    let fault = fault_with("plain", json!({ "allowed_tools": ["echo"], "disabled_tools": ["hang"] }));
    let names: Vec<String> = fault.catalogue().await.tools.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["mcp_fault_echo"]);
    let refused = fault.call("env", json!({})).await;
    assert!(
        matches!(&refused, Outcome::NotSent { why, needs_login: false } if why.contains("not allowed")),
        "{refused:?}"
    );
    assert_eq!(fault.count("call"), 0);
    fault.host.stop().await;
}

/// Row X17: the program sees nothing of our environment that it was not given.
#[tokio::test]
async fn x17_a_program_sees_a_clean_environment() {
    let fault = fault_with("plain", json!({ "env_vars": ["CARGO_MANIFEST_DIR"] }));
    let seen: Value = serde_json::from_str(&text(fault.call("env", json!({})).await)).unwrap();
    let seen: Vec<&str> = seen.as_object().unwrap().keys().map(String::as_str).collect();
    let needed = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL"];
    let given = ["FAULT_LOG", "FAULT_KEY", "CARGO_MANIFEST_DIR"];
    let foreign: Vec<&&str> =
        seen.iter().filter(|name| !needed.contains(name) && !given.contains(name)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(given.iter().all(|name| seen.contains(name)));
    // cargo itself sets many: they must not be there.
    assert!(std::env::var("CARGO_PKG_NAME").is_ok() && !seen.contains(&"CARGO_PKG_NAME"));
    fault.host.stop().await;
}
