//! How servers start, die, come back and end.

use std::time::{Duration, Instant};

use serde_json::json;
use toolyard_mcp::{Era, Outcome};

use crate::yard::{alive, eventually, fault, fault_with, host, owner, server, text};

#[tokio::test]
async fn x17_a_server_that_exits_says_why_in_its_own_words_without_secrets() {
    let fault = fault("exit");
    fault.host.start(&owner("a"), std::slice::from_ref(&fault.settings));
    let status = fault.until("the failure", |s| s.state == "backing_off").await;
    let why = status.why.unwrap();
    assert!(why.contains("cannot open the database with key [hidden]"), "{why}");
    assert!(
        why.contains("Bearer [hidden]") && !why.contains("very-secret-key") && !why.contains("abcdef"),
        "{why}"
    );
    fault.host.stop().await;
    assert_eq!(fault.status().state, "stopped");
}

/// Five failures open the circuit: no more programs are started until a
/// pause has passed or somebody asks for it.
#[tokio::test]
async fn a_server_that_always_fails_is_given_up_and_tried_again_on_demand() {
    let fault = fault("exit");
    let seen = fault.catalogue().await;
    assert!(seen.tools.is_empty());
    assert_eq!((seen.missing[0].required, seen.missing[0].needs_login), (false, false));
    let status = fault.until("giving up", |s| s.state == "failed").await;
    assert!(status.retry_in_ms.unwrap() > 50_000, "{status:?}");
    // Each try starts the program for both eras.
    let starts = fault.count("start");
    assert_eq!(starts, 10);
    assert!(matches!(fault.call("echo", json!({})).await, Outcome::NotSent { .. }));
    assert_eq!(fault.count("start"), starts);
    fault.host.refresh(&owner("a"), &fault.settings);
    eventually("a new try", || (fault.count("start") > starts).then_some(())).await;
    fault.host.stop().await;
}

#[tokio::test]
async fn a_mute_server_fails_within_its_time_to_start() {
    let fault = fault_with("mute", json!({ "startup_timeout_sec": 0.5 }));
    fault.host.start(&owner("a"), std::slice::from_ref(&fault.settings));
    let status = fault.until("the failure", |s| s.state == "backing_off").await;
    assert!(status.why.unwrap().contains("did not start within 500ms"));
    fault.host.stop().await;
}

#[tokio::test]
async fn a_missing_program_fails_for_good_with_its_name() {
    let host = host();
    let settings = server("nothing", json!({ "command": "/no/such/program" }));
    let seen = host.catalogue(&owner("a"), &[settings], Duration::from_secs(20)).await;
    assert!(seen.missing[0].why.contains("/no/such/program cannot be started"), "{:?}", seen.missing);
    assert_eq!(host.status()[0].state, "failed");
    host.stop().await;
}

/// A server of the older era may die of the first question of the newer one:
/// it is started again for its own era, which is then remembered.
#[tokio::test]
async fn a_server_that_dies_on_discover_is_started_again_for_its_era() {
    let fault = fault("dies-on-discover");
    assert!(!fault.catalogue().await.tools.is_empty());
    assert_eq!((fault.count("start"), fault.status().era), (2, Some(Era::Legacy)));
    let _ = fault.call("die", json!({})).await;
    assert_eq!(text(fault.call("echo", json!({ "message": "x" })).await), "x");
    assert_eq!(fault.count("start"), 3, "the era was not remembered");
    fault.host.stop().await;
}

#[tokio::test]
async fn a_server_that_ignores_discover_is_asked_the_older_way() {
    let fault = fault("ignores-discover");
    let start = Instant::now();
    assert!(!fault.catalogue().await.tools.is_empty());
    assert!(start.elapsed() > Duration::from_secs(9));
    let again = Instant::now();
    let _ = fault.call("die", json!({})).await;
    assert_eq!(text(fault.call("echo", json!({ "message": "x" })).await), "x");
    assert!(again.elapsed() < Duration::from_secs(9), "the era was not remembered");
    fault.host.stop().await;
}

#[tokio::test]
async fn both_eras_are_spoken_and_noise_does_no_harm() {
    for (mode, era, version) in [
        ("noise", Era::Legacy, "2025-11-25"),
        ("plain", Era::Legacy, "2025-11-25"),
        ("modern", Era::Modern, "2026-07-28"),
    ] {
        let fault = fault(mode);
        assert_eq!(text(fault.call("echo", json!({ "message": "x" })).await), "x");
        let status = fault.status();
        assert_eq!((status.era, status.protocol_version.as_deref()), (Some(era), Some(version)));
        assert_eq!(status.state, "ready");
        fault.host.stop().await;
    }
}

/// Row X17: whatever a server started ends with it, within two seconds, also
/// if it ignores the end of its input and the signal.
#[tokio::test]
async fn x17_nothing_is_left_of_a_server_and_its_children() {
    for mode in ["plain", "ignores-end"] {
        let fault = fault(mode);
        let pid: i32 = text(fault.call("grandchild", json!({})).await).parse().unwrap();
        assert!(alive(pid));
        let start = Instant::now();
        fault.host.stop().await;
        assert!(start.elapsed() < Duration::from_secs(3));
        eventually("the end of the grandchild", || (!alive(pid)).then_some(())).await;
        assert!(start.elapsed() < Duration::from_secs(3));
    }
}

/// The same when the host is dropped in the middle of everything.
#[tokio::test]
async fn x17_a_server_that_dies_takes_its_children_with_it() {
    let fault = fault("plain");
    let pid: i32 = text(fault.call("grandchild", json!({})).await).parse().unwrap();
    let _ = fault.call("die", json!({})).await;
    eventually("the end of the grandchild", || (!alive(pid)).then_some(())).await;
    fault.host.stop().await;
}

/// A required server is waited for; another one is not.
#[tokio::test]
async fn g4_a_run_begins_with_what_is_ready() {
    let slow = fault_with("mute", json!({ "startup_timeout_sec": 5 }));
    let mut required = fault("plain");
    required.settings.required = true;
    let servers = [slow.settings.clone(), required.settings.clone()];
    let host = host();
    // Both have the same name here; the second is the one with tools.
    let seen = host.catalogue(&owner("a"), &servers, Duration::ZERO).await;
    assert!(seen.tools.iter().any(|tool| tool.tool.raw == "echo"));
    assert_eq!((seen.missing.len(), seen.missing[0].why.as_str()), (1, "starting"));
    host.stop().await;
}

#[tokio::test]
async fn a_disabled_server_is_not_started() {
    let fault = fault_with("plain", json!({ "enabled": false }));
    let seen = fault.catalogue().await;
    assert_eq!((seen.tools.len(), seen.missing[0].why.as_str()), (0, "disabled"));
    assert_eq!((fault.count("start"), fault.status().state), (0, "disabled"));
    assert!(matches!(fault.call("echo", json!({})).await, Outcome::NotSent { .. }));
}

/// One program for everybody, or one for each tenant, as the operator says.
#[tokio::test]
async fn a_connection_is_shared_only_as_the_settings_say() {
    for (sharing, starts) in [("shared", 1), ("tenant", 2)] {
        let fault = fault_with("plain", json!({ "sharing": sharing }));
        for tenant in ["a", "b", "a"] {
            let call = crate::yard::call("echo", json!({ "message": tenant }));
            assert_eq!(text(fault.host.call(&owner(tenant), &fault.settings, call).await), tenant);
        }
        assert_eq!(fault.count("start"), starts);
        fault.host.stop().await;
    }
}

/// Two agents may share a program and have different patience.
#[tokio::test]
async fn each_caller_has_its_own_time_on_a_shared_connection() {
    let fault = fault("plain");
    fault.catalogue().await;
    let mut hasty = fault.settings.clone();
    (hasty.idle, hasty.total) = (Duration::from_millis(200), Duration::from_millis(200));
    let me = owner("a");
    let (slow, quick) = tokio::join!(
        fault.call("steps", json!({ "steps": 1, "pause": 0.8 })),
        fault.host.call(&me, &hasty, crate::yard::call("steps", json!({ "steps": 1, "pause": 0.8 })))
    );
    assert_eq!(text(slow), "all steps done");
    assert!(matches!(&quick, Outcome::Unknown(why) if why.contains("200ms")), "{quick:?}");
    assert_eq!(fault.count("start"), 1);
    fault.host.stop().await;
}
