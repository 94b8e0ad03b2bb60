//! Rows of the store as REST answers, and the frames made of them.

use serde_json::{Value, json};
use toolyard_dialects::native::{
    Frame, RunFacts, RunSnapshot, SpaceSnapshot, message_frame, message_view, reset_frame, run_view,
    space_reset_frame, wait_view,
};
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::principal::{Role, Viewer};
use toolyard_protocol::run::{PauseReason, RunStatus};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::{AnswerRule, Wait, WaitKind};
use toolyard_protocol::*;

use crate::samples;

fn message(visibility: Visibility, show_reasoning: bool) -> Message {
    let mut parts = samples::parts(visibility);
    parts.push(Part::Reasoning {
        text: "canary-thought".into(),
        metadata: json!("canary-secret-sign").into(),
    });
    Message {
        id: MessageId::parse("msg_1").unwrap(),
        space: samples::space(),
        seq: 7,
        speaker: Speaker::Assistant,
        entity: Some(samples::other()),
        run: Some(samples::run()),
        branch: BranchId::main(),
        parts,
        show_reasoning,
        metadata: Some(json!({ "m": 1 })),
        created_at: samples::at(),
    }
}

fn facts() -> RunFacts {
    RunFacts {
        id: samples::run(),
        status: RunStatus::WaitingTool,
        reason: Some(PauseReason::Client),
        agent: AgentName::parse("helper").unwrap(),
        agent_version: Some(Hash::of(b"canary-secret-agent")),
        space: Some(samples::space()),
        agent_entity: Some(samples::other()),
        triggered_by: Some(samples::user()),
        parent: None,
        root: samples::run(),
        error: None,
        created_at: samples::at(),
        updated_at: samples::at(),
        last_seq: 9,
    }
}

fn wait(kind: WaitKind, visibility: Visibility, rule: AnswerRule) -> Wait {
    Wait {
        run: samples::run(),
        root: samples::run(),
        id: WaitId::of(kind, &samples::call(1), 0),
        kind,
        call: samples::call(1),
        tool: ToolName::parse("setGoals").unwrap(),
        visibility,
        rule,
        opened_at: samples::at(),
        expires_at: Some(samples::at()),
        claim: Some((ClientId::parse("cli_1").unwrap(), samples::at())),
        payload: json!("canary-secret-timer"),
    }
}

fn trigger() -> AnswerRule {
    AnswerRule::Trigger { entity: samples::user() }
}

/// Every frame that is made of rows.
pub(crate) fn frames(viewer: &Viewer) -> Vec<Frame> {
    let run = run_view(facts(), viewer);
    let messages = vec![message_view(&message(Visibility::Private, true), viewer)];
    let waits = vec![wait_view(
        &wait(WaitKind::Approval, Visibility::Private, trigger()),
        Some(&samples::space()),
        Some(&json!("asked")),
        viewer,
    )];
    let space = SpaceSnapshot {
        space: samples::space(),
        last_pos: 12,
        runs: vec![run.clone()],
        messages: messages.clone(),
        waits: waits.clone(),
    };
    vec![
        message_frame(&message(Visibility::Private, false), viewer),
        message_frame(&Message { run: None, ..message(Visibility::Public, true) }, viewer),
        reset_frame(&RunSnapshot { run, messages, waits }),
        space_reset_frame(&space),
    ]
}

#[test]
fn transcripts_of_rows_for_each_viewer() {
    for (name, viewer) in samples::viewers() {
        let text: String = frames(&viewer).into_iter().map(Frame::encode).collect();
        insta::assert_snapshot!(format!("rows_for_{name}"), text);
        assert_eq!(text.contains("canary-tool"), name == "secret", "{name}");
        assert_eq!(text.contains("canary-secret"), name == "secret", "{name}");
        assert_eq!(text.contains("asked"), name != "bystander", "{name}");
    }
}

#[test]
fn a_message_is_shown_in_the_documents_words() {
    let user = Message {
        speaker: Speaker::User,
        parts: vec![Part::text("Hello "), Part::text("there")],
        run: None,
        metadata: None,
        ..message(Visibility::Public, false)
    };
    let [_, _, (_, bystander)] = samples::viewers();
    assert_eq!(
        serde_json::to_value(message_view(&user, &bystander)).unwrap(),
        json!({
            "id": "msg_1", "smartSpaceId": "spc_1", "seq": 7, "role": "user", "entityId": "ent_other", "branchId": "main",
            "content": "Hello there", "createdAt": "2023-11-14T22:13:20.123Z",
            "parts": [{ "type": "text", "text": "Hello " }, { "type": "text", "text": "there" }],
        })
    );
}

#[test]
fn reasoning_is_shown_by_the_setting_of_the_space() {
    let [(_, secret), _, (_, bystander)] = samples::viewers();
    let thinks = |viewer: &Viewer, show| {
        let view = serde_json::to_string(&message_view(&message(Visibility::Public, show), viewer)).unwrap();
        (view.contains("canary-thought"), view.contains("canary-secret"))
    };
    assert_eq!(thinks(&secret, false), (true, true));
    assert_eq!(thinks(&bystander, true), (true, false));
    assert_eq!(thinks(&bystander, false), (false, false));
}

#[test]
fn a_run_shows_its_agents_version_to_secret_keys_only() {
    let [(_, secret), _, (_, bystander)] = samples::viewers();
    let whole = serde_json::to_value(run_view(facts(), &secret)).unwrap();
    assert_eq!(
        whole,
        json!({
            "id": "run_1", "status": "waiting_tool", "reason": "client", "agentName": "helper",
            "agentVersion": Hash::of(b"canary-secret-agent"), "smartSpaceId": "spc_1", "agentEntityId": "ent_other",
            "triggeredById": "ent_user", "rootRunId": "run_1", "createdAt": "2023-11-14T22:13:20.123Z",
            "updatedAt": "2023-11-14T22:13:20.123Z", "lastSeq": 9,
        })
    );
    let mut public = whole;
    public.as_object_mut().unwrap().remove("agentVersion");
    assert_eq!(serde_json::to_value(run_view(facts(), &bystander)).unwrap(), public);
}

#[test]
fn a_wait_is_shown_in_the_documents_words() {
    let [_, (_, answerer), _] = samples::viewers();
    let asked = wait(WaitKind::Approval, Visibility::Private, trigger());
    assert_eq!(
        serde_json::to_value(wait_view(&asked, Some(&samples::space()), Some(&json!({ "a": 1 })), &answerer))
            .unwrap(),
        json!({
            "id": "wait_approval_1", "runId": "run_1", "rootRunId": "run_1", "smartSpaceId": "spc_1", "kind": "approval",
            "toolCallId": "call_1", "toolName": "setGoals", "openedAt": "2023-11-14T22:13:20.123Z",
            "expiresAt": "2023-11-14T22:13:20.123Z", "claimedBy": "cli_1", "claimedUntil": "2023-11-14T22:13:20.123Z",
            "mayAnswer": true, "payload": { "a": 1 },
        })
    );
}

/// Who sees the payload of a wait, by kind, rule and the tool's class.
#[test]
fn x7_the_payload_of_a_wait_is_for_those_who_may_answer() {
    let [(_, secret), (_, answerer), (_, bystander)] = samples::viewers();
    let admin = Viewer::public(samples::other(), Role::Admin);
    let payload = json!("asked");
    let seen = |kind, visibility, rule: AnswerRule| {
        let wait = wait(kind, visibility, rule);
        [&secret, &answerer, &bystander, &admin].map(|viewer| {
            let view = wait_view(&wait, None, Some(&payload), viewer);
            (view.may_answer, view.payload.is_some())
        })
    };
    let (all, not, blind) = ((true, true), (false, false), (true, false));
    use Visibility::{Private, Public};
    for kind in [WaitKind::Approval, WaitKind::Input, WaitKind::Credential] {
        for visibility in [Private, Public] {
            assert_eq!(seen(kind, visibility, trigger()), [all, all, not, not]);
            assert_eq!(seen(kind, visibility, AnswerRule::Members {}), [all, all, all, all]);
            assert_eq!(seen(kind, visibility, AnswerRule::Admin {}), [all, not, not, all]);
            assert_eq!(seen(kind, visibility, AnswerRule::Backend {}), [all, not, not, not]);
        }
    }
    // The arguments of a client's call follow the tool, as on the stream.
    assert_eq!(seen(WaitKind::Client, Public, trigger()), [all, all, not, not]);
    assert_eq!(seen(WaitKind::Client, Private, trigger()), [all, blind, not, not]);
    assert_eq!(seen(WaitKind::Timer, Public, AnswerRule::Gateway {}), [not; 4]);
    assert_eq!(seen(WaitKind::Child, Public, AnswerRule::Gateway {}), [not; 4]);
}

#[test]
fn a_reset_sets_the_readers_position() {
    let frames = frames(&Viewer::secret());
    let [run, space] = [&frames[2], &frames[3]];
    assert_eq!((run.name(), run.id()), ("reset", Some(9)));
    assert_eq!((space.name(), space.id()), ("reset", Some(12)));
    let payload: Value = serde_json::from_str(space.data()).unwrap();
    assert_eq!((&payload["lastSeq"], &payload["smartSpaceId"]), (&json!(12), &json!("spc_1")));
}
