//! The gate: order of rules, defaults, grants, fingerprints, taint.

use serde_json::{Value, json};
use toolyard_engine::permission::{Decision, Grant, GrantEffect, GrantScope, Policy, decide, key_of};
use toolyard_protocol::agent::execution::{AiAgent, Basic, Compute, Execution, Prebuilt, Request, Waiting};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Approval, IfAbsent, Place, ToolSpec, Visibility};
use toolyard_protocol::{GrantId, SpaceId, ToolName};

use crate::fixture::NOW;

fn spec(execution: Execution, place: Place, risk: Risk) -> ToolSpec {
    ToolSpec {
        name: ToolName::parse("act").unwrap(),
        description: "Acts.".to_owned(),
        input_schema: json!({"type": "object"}),
        execution,
        place,
        risk,
        visibility: Visibility::Public,
        approval: None,
        answerers: None,
        timeout_ms: None,
        expires_ms: None,
        if_absent: IfAbsent::Wait,
        idempotent: false,
        trusted: false,
        service_id: None,
        deprecated: None,
        category: None,
        version: None,
        brought: None,
    }
}
fn basic() -> Execution {
    Execution::Basic(Basic::default())
}
fn request() -> Execution {
    let request: Request = serde_json::from_value(json!({"url": "https://example.com"})).unwrap();
    Execution::Request(request)
}
fn agent(config: Value) -> Execution {
    Execution::AiAgent(AiAgent { agent_config: config, include_context: false, stream: false, timeout: None })
}
fn risky() -> ToolSpec {
    spec(request(), Place::Gateway, Risk::High)
}
fn grant(spec: &ToolSpec, effect: GrantEffect) -> Grant {
    Grant {
        id: GrantId::parse("grt_1").unwrap(),
        tool: key_of(spec),
        effect,
        scope: GrantScope::Stored {},
        fingerprint: spec.fingerprint(),
        max_risk: None,
        args: None,
        exact: false,
        expires_at: None,
    }
}
fn gate(spec: &ToolSpec, grants: &[Grant]) -> Decision {
    decide(spec, &Policy::default(), grants, &json!({"path": "/tmp", "n": 1}), false)
}

#[test]
fn by_default_only_risky_tools_that_reach_outside_ask() {
    let prebuilt = || Execution::Prebuilt(Prebuilt { action: "setGoals".to_owned(), channels: None });
    let inside = [
        (basic(), Place::Client),
        (basic(), Place::Gateway),
        (prebuilt(), Place::Gateway),
        (Execution::Waiting(Waiting::default()), Place::Gateway),
        (Execution::Compute(Compute::default()), Place::Gateway),
        (agent(json!("assistant")), Place::Agent),
    ];
    for (execution, place) in inside {
        let tool = spec(execution, place, Risk::High);
        assert_eq!(gate(&tool, &[]), Decision::Allow, "{:?}", tool.execution);
    }
    let outside = [
        (request(), Place::Gateway),
        (basic(), Place::Mcp),
        (agent(json!({"url": "https://far.example"})), Place::Agent),
    ];
    for (execution, place) in outside {
        let high = spec(execution.clone(), place, Risk::High);
        assert_eq!(gate(&high, &[]), Decision::Ask, "{:?}", high.execution);
        let medium = spec(execution, place, Risk::Medium);
        assert_eq!(gate(&medium, &[]), Decision::Allow);
    }
}

#[test]
fn a_client_tool_of_a_service_counts_as_mcp() {
    let mut tool = spec(basic(), Place::Client, Risk::High);
    tool.service_id = Some("files".to_owned());
    assert_eq!(key_of(&tool), "files:act");
    assert_eq!(gate(&tool, &[]), Decision::Ask);
    assert_eq!(gate(&tool, &[grant(&tool, GrantEffect::Allow)]), Decision::Allow);
    // A grant for another service's tool of the same name says nothing.
    let mut other = grant(&tool, GrantEffect::Allow);
    other.tool = "mail:act".to_owned();
    assert_eq!(gate(&tool, &[other]), Decision::Ask);
}

#[test]
fn the_agents_policy_goes_before_the_operators() {
    let medium = spec(request(), Place::Gateway, Risk::Medium);
    let low = spec(request(), Place::Gateway, Risk::Low);
    let ask = |spec, ask_from, default_ask_from| {
        let policy = Policy { ask_from, default_ask_from, ..Policy::default() };
        decide(spec, &policy, &[], &json!({}), false)
    };
    assert_eq!(ask(&medium, None, Risk::Medium), Decision::Ask);
    assert_eq!(ask(&medium, Some(Risk::High), Risk::Medium), Decision::Allow);
    assert_eq!(ask(&low, Some(Risk::Low), Risk::High), Decision::Ask);
}

#[test]
fn the_tools_own_word_goes_before_policy_and_default() {
    let mut tool = risky();
    tool.approval = Some(Approval::Allow);
    assert_eq!(gate(&tool, &[]), Decision::Allow);
    let mut safe = spec(basic(), Place::Client, Risk::Low);
    safe.approval = Some(Approval::Ask);
    assert_eq!(gate(&safe, &[]), Decision::Ask);
    assert_eq!(gate(&safe, &[grant(&safe, GrantEffect::Allow)]), Decision::Allow);
}

#[test]
fn any_deny_wins_over_every_grant() {
    let denied = Decision::Deny("Denied: the tool act is not allowed here".to_owned());
    let mut tool = risky();
    let allow = grant(&tool, GrantEffect::Allow);
    let mut session = allow.clone();
    session.scope = GrantScope::Session { space: SpaceId::parse("spc_1").unwrap() };
    let deny = grant(&tool, GrantEffect::Deny);
    assert_eq!(gate(&tool, &[session.clone(), allow.clone(), deny]), denied);
    assert_eq!(gate(&tool, std::slice::from_ref(&session)), Decision::Allow);
    tool.approval = Some(Approval::Deny);
    assert_eq!(gate(&tool, &[session, allow]), denied);
}

#[test]
fn a_changed_tool_voids_an_allow_and_not_a_deny() {
    let old = risky();
    let mut new = risky();
    new.description = "Acts, and sends your files away.".to_owned();
    assert_eq!(gate(&new, &[grant(&old, GrantEffect::Allow)]), Decision::Ask);
    let decision = gate(&new, &[grant(&old, GrantEffect::Deny)]);
    assert!(matches!(decision, Decision::Deny(_)));
}

#[test]
fn a_grant_covers_its_argument_pattern_and_its_risk_only() {
    let tool = risky();
    let with = |args: Value| Grant { args: Some(args), ..grant(&tool, GrantEffect::Allow) };
    assert_eq!(gate(&tool, &[with(json!({"path": "/tmp"}))]), Decision::Allow);
    assert_eq!(gate(&tool, &[with(json!({"path": "/etc"}))]), Decision::Ask);
    assert_eq!(gate(&tool, &[with(json!({"path": "/tmp", "more": null}))]), Decision::Ask);
    assert_eq!(gate(&tool, &[with(json!("path"))]), Decision::Ask);
    let capped = Grant { max_risk: Some(Risk::Medium), ..grant(&tool, GrantEffect::Allow) };
    assert_eq!(gate(&tool, &[capped]), Decision::Ask);
}

#[test]
fn in_a_tainted_run_a_high_risk_call_needs_a_grant() {
    let tainted =
        |tool: &ToolSpec, grants: &[Grant]| decide(tool, &Policy::default(), grants, &json!({}), true);
    let mut tool = spec(basic(), Place::Client, Risk::High);
    assert_eq!(tainted(&tool, &[]), Decision::Ask);
    tool.approval = Some(Approval::Allow);
    assert_eq!(tainted(&tool, &[]), Decision::Ask);
    assert_eq!(tainted(&tool, &[grant(&tool, GrantEffect::Allow)]), Decision::Allow);
    tool.risk = Risk::Medium;
    assert_eq!(tainted(&tool, &[]), Decision::Allow);
}

#[test]
fn a_grant_lives_until_its_end_and_survives_the_store() {
    let ends = Grant { expires_at: Some(NOW), ..grant(&risky(), GrantEffect::Allow) };
    assert!(!ends.is_live(NOW));
    assert!(ends.is_live(toolyard_protocol::Timestamp::from_millis(0)));
    let text = serde_json::to_string(&ends).unwrap();
    assert_eq!(serde_json::from_str::<Grant>(&text).unwrap(), ends);
}
