//! At least one event of every kind, every field filled, with a canary in each
//! guarded one. `coverage` fails when a field is missing here.
//!
//! The words: `canary-secret-*` is class S, `canary-tool-*` follows a private
//! tool, `canary-open-*` follows a public one, `canary-answer-*` is for those
//! who may answer, `canary-thought-*` is hidden reasoning.

use serde_json::{Value, json};
use toolyard_protocol::agent::OutputSection;
use toolyard_protocol::event::*;
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::message::Part;
use toolyard_protocol::picks::Picks;
use toolyard_protocol::principal::{Actor, KeyKind, Role};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, MessagePolicy, PauseReason, RunEnd, Usage};
use toolyard_protocol::tool::{Answerers, Place, Visibility};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::*;

pub(crate) fn run() -> RunId {
    RunId::parse("run_1").unwrap()
}
pub(crate) fn space() -> SpaceId {
    SpaceId::parse("spc_1").unwrap()
}
pub(crate) fn user() -> EntityId {
    EntityId::parse("ent_user").unwrap()
}
pub(crate) fn other() -> EntityId {
    EntityId::parse("ent_other").unwrap()
}
pub(crate) fn call(n: u32) -> CallId {
    CallId::parse(&format!("call_{n}")).unwrap()
}
pub(crate) fn at() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_123)
}

/// The three that look: a backend, who may answer, and who may not.
pub(crate) fn viewers() -> [(&'static str, Viewer); 3] {
    [
        ("secret", Viewer::secret()),
        ("answerer", Viewer::public(user(), Role::Member)),
        ("bystander", Viewer::public(other(), Role::Member)),
    ]
}

fn message(n: u32) -> MessageId {
    MessageId::parse(&format!("msg_{n}")).unwrap()
}
fn wait(kind: WaitKind, n: u32) -> WaitId {
    WaitId::of(kind, &call(n), 0)
}
fn tool(visibility: Visibility) -> ToolName {
    let name = match visibility {
        Visibility::Private => "setGoals",
        Visibility::Public => "getUserApproval",
    };
    ToolName::parse(name).unwrap()
}
/// A text of a tool's own.
fn own(visibility: Visibility, what: &str) -> String {
    match visibility {
        Visibility::Private => format!("canary-tool-{what}"),
        Visibility::Public => format!("canary-open-{what}"),
    }
}
fn secret_hash(what: &str) -> Guarded<Hash> {
    Hash::of(format!("canary-secret-{what}").as_bytes()).into()
}
fn secret_value(what: &str) -> Guarded<Value> {
    json!({ "s": format!("canary-secret-{what}") }).into()
}
fn secret_text(what: &str) -> Guarded<String> {
    format!("canary-secret-{what}").into()
}
fn secret_actor(what: &str) -> Guarded<Actor> {
    let client = ClientId::parse(&format!("canary-secret-{what}")).unwrap();
    Actor::Caller { kind: KeyKind::Public, entity: Some(user()), client: Some(client) }.into()
}
fn usage() -> Usage {
    Usage { input_tokens: 11, output_tokens: 7, reasoning_tokens: 3, cached_tokens: 2, cache_write_tokens: 1 }
}

/// Texts in which a secret hides although they do not spell it.
pub(crate) fn secret_texts() -> Vec<String> {
    ["agent", "toolset", "new-toolset", "asked", "requested"]
        .iter()
        .map(|what| Hash::of(format!("canary-secret-{what}").as_bytes()).to_string())
        .chain([String::from("987654")])
        .collect()
}

/// One part of each type; reasoning stands alone.
pub(crate) fn parts(visibility: Visibility) -> Vec<Part> {
    vec![
        Part::text("Hello \u{1F600} \"you\"\nsecond line"),
        Part::File {
            media_type: "image/png".into(),
            file: Some(FileId::parse("file_1").unwrap()),
            url: Some("https://example.com/a.png".into()),
            name: Some("a.png".into()),
        },
        Part::Source {
            id: "src_1".into(),
            url: "https://example.com/".into(),
            title: Some("Example".into()),
            start_index: Some(1),
            end_index: Some(5),
        },
        Part::ToolCall {
            call: call(1),
            tool: tool(visibility),
            visibility,
            args: json!({ "a": own(visibility, "part-args") }).into(),
            metadata: secret_value("part-call"),
        },
        Part::ToolResult {
            call: call(1),
            tool: tool(visibility),
            visibility,
            outcome: OutcomeKind::Ok,
            value: json!({ "r": own(visibility, "part-value") }).into(),
            error: Guarded::Hidden,
        },
        Part::ToolResult {
            call: call(1),
            tool: tool(visibility),
            visibility,
            outcome: OutcomeKind::Failed,
            value: Guarded::Hidden,
            error: own(visibility, "part-error").into(),
        },
        Part::Data { name: "chart".into(), value: json!({ "x": [1, null] }) },
        Part::Opaque { value: secret_value("opaque") },
    ]
}

fn reasoning(shown: bool) -> Part {
    let text = if shown { "canary-open-thought" } else { "canary-thought-hidden" };
    Part::Reasoning { text: text.into(), metadata: secret_value("signature") }
}

/// Every kind, in the order of the log's table.
pub(crate) fn all() -> Vec<Event> {
    let mut events = vec![created(), RunStarted {}.into(), restarted()];
    for visibility in [Visibility::Private, Visibility::Public] {
        events.extend([replied(visibility), amended_reply(visibility)]);
        events.extend(answered(visibility));
        events.push(requested(visibility));
        events.push(progressed(visibility));
        events.extend(returned(visibility));
        events.extend(amended_result(visibility));
        events.extend(child(visibility));
    }
    events.extend(asked());
    events.extend(others());
    events
}

/// It holds no words: this one stands for a canary.
pub(crate) const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn created() -> Event {
    RunCreated {
        agent: AgentName::parse("helper").unwrap(),
        agent_version: secret_hash("agent"),
        toolset: secret_hash("toolset"),
        space: Some(space()),
        agent_entity: Some(EntityId::parse("ent_agent").unwrap()),
        trigger: Some(Trigger { entity: user(), message: Some(message(1)) }),
        branch: BranchId::main(),
        history_to: 3,
        parent: Some(Parent { run: RunId::parse("run_0").unwrap(), call: call(9) }),
        root: RunId::parse("run_0").unwrap(),
        depth: 1,
        show_reasoning: true,
        limits: RunLimits {
            max_steps: 987_654,
            run_steps: 987_654,
            tool_failures: 987_654,
            max_tokens: Some(987_654),
            max_cost: Some(987_654),
        }
        .into(),
        on_message: MessagePolicy::Interrupt.into(),
        answerers: Answerers::Admin.into(),
        by: secret_actor("creator"),
        metadata: secret_value("run-metadata"),
        model: secret_text("asked-model"),
        errand: Errand { prompt: "canary-secret-errand".to_owned(), visibility: Visibility::Private }.into(),
        picks: Picks {
            tools: [("canary-secret-pick".to_owned(), false)].into(),
            categories: Some(vec!["canary-secret-category".to_owned()]),
        }
        .into(),
        output: OutputSection {
            schema: json!({ "title": "canary-secret-output" }),
            name: Some("answer".to_owned()),
            strict: true,
        }
        .into(),
        tainted: true,
        replayed: Some(Replayed { run: RunId::parse("run_before").unwrap(), step: 2 }),
        trace: TraceParent::parse(TRACE).unwrap().into(),
    }
    .into()
}

fn restarted() -> Event {
    StepRestarted { step: 1, attempt: 2, why: secret_text("why") }.into()
}

fn replied(visibility: Visibility) -> Event {
    let show_reasoning = visibility == Visibility::Public;
    let mut said = parts(visibility);
    said.insert(0, reasoning(show_reasoning));
    ModelReplied {
        step: 1,
        message: message(2),
        parts: said,
        show_reasoning,
        calls: vec![ReplyCall {
            call: call(1),
            tool: tool(visibility),
            visibility,
            args: json!({ "a": own(visibility, "reply-args") }).into(),
            metadata: secret_value("vendor-call"),
        }],
        usage: usage(),
        cost: Some(1200),
        model: secret_text("answering-model"),
        finish: FinishReason::ToolCalls,
        partial: true,
        metadata: secret_value("vendor-reply"),
    }
    .into()
}

fn amended_reply(visibility: Visibility) -> Event {
    let show_reasoning = visibility == Visibility::Public;
    let mut said = parts(visibility);
    said.push(reasoning(show_reasoning));
    ReplyAmended { step: 1, message: message(2), parts: said, show_reasoning, by: secret_text("hook") }.into()
}

/// All three kinds for a private tool whose prompt the trigger may see, and
/// one that no public key may answer.
fn asked() -> Vec<Event> {
    let ask = |kind, n, rule, what: &str| {
        let visibility = Visibility::Private;
        Event::from(Asked {
            wait: wait(kind, n),
            kind,
            step: 1,
            call: call(n),
            tool: tool(visibility),
            place: Place::Gateway,
            risk: Risk::High,
            visibility,
            rule,
            expires: Some(at()),
            payload: json!({ "args": what }).into(),
            fingerprint: secret_hash("asked"),
            state: secret_value("far-state"),
            held: kind == WaitKind::Input,
        })
    };
    let trigger = || AnswerRule::Trigger { entity: user() };
    vec![
        ask(WaitKind::Approval, 1, trigger(), "canary-answer-approval"),
        ask(WaitKind::Input, 2, trigger(), "canary-answer-input"),
        ask(WaitKind::Credential, 3, trigger(), "canary-answer-credential"),
        ask(WaitKind::Approval, 4, AnswerRule::Backend {}, "canary-secret-backend-approval"),
        Event::from(ChildAsked {
            call: call(1),
            child: RunId::parse("run_2").unwrap(),
            wait: wait(WaitKind::Approval, 5),
            kind: WaitKind::Approval,
            rule: trigger(),
            payload: json!({ "args": "canary-answer-child" }).into(),
        }),
    ]
}

fn answered(visibility: Visibility) -> Vec<Event> {
    vec![
        Answered {
            wait: wait(WaitKind::Approval, 1),
            kind: WaitKind::Approval,
            call: call(1),
            visibility,
            decision: Decision::Allow,
            edited: json!({ "a": own(visibility, "edited") }).into(),
            recount: true,
            by: secret_actor("answerer"),
        }
        .into(),
    ]
}

fn requested(visibility: Visibility) -> Event {
    let (place, kind) = match visibility {
        Visibility::Private => (Place::Gateway, WaitKind::Timer),
        Visibility::Public => (Place::Client, WaitKind::Client),
    };
    ToolCallRequested {
        step: 1,
        call: call(1),
        tool: tool(visibility),
        place,
        risk: Risk::Medium,
        visibility,
        idempotent: true,
        wait: Some(Parked {
            wait: wait(kind, 1),
            kind,
            rule: AnswerRule::Trigger { entity: user() },
            payload: secret_value("timer"),
        }),
        expires: Some(at()),
        untrusted: true,
        args: json!({ "a": own(visibility, "args") }).into(),
        fingerprint: secret_hash("requested"),
    }
    .into()
}

fn progressed(visibility: Visibility) -> Event {
    ToolProgressed {
        call: call(1),
        tool: tool(visibility),
        visibility,
        fraction: Some(0.5),
        message: own(visibility, "progress").into(),
        preliminary: json!([own(visibility, "preliminary")]).into(),
        ticket: secret_value("ticket"),
        spent: Spent { usage: Usage::default(), cost: Some(7) }.into(),
    }
    .into()
}

fn returned(visibility: Visibility) -> Vec<Event> {
    let value = ToolOutcome::Ok(json!({ "r": own(visibility, "value") }));
    let by = Actor::Caller { kind: KeyKind::Secret, entity: None, client: None };
    let mut ok = ToolReturned::new(call(1), tool(visibility), visibility, value, by);
    ok.by = secret_actor("returner");
    ok.untrusted = true;
    ok.recount = true;
    let hash = Hash::of(own(visibility, "blob").as_bytes());
    ok.blob = BlobRef { blob: hash, bytes: 70_000 }.into();
    let error = ToolOutcome::Failed(own(visibility, "error"));
    let mut failed = ToolReturned::new(call(1), tool(visibility), visibility, error, Actor::Gateway {});
    ok.spent = Spent { usage: usage(), cost: Some(5) }.into();
    failed.code = Some(toolyard_protocol::ErrorCode::ToolNotFound);
    failed.spent = ok.spent.clone();
    vec![ok.into(), failed.into()]
}

fn amended_result(visibility: Visibility) -> Vec<Event> {
    let amended = |outcome, value, error| {
        let by = secret_text("hook");
        Event::from(ResultAmended {
            call: call(1),
            tool: tool(visibility),
            visibility,
            outcome,
            value,
            error,
            untrusted: true,
            by,
        })
    };
    vec![
        amended(OutcomeKind::Ok, json!([own(visibility, "amended")]).into(), Guarded::Hidden),
        amended(OutcomeKind::Failed, Guarded::Hidden, own(visibility, "amended-error").into()),
    ]
}

fn child(visibility: Visibility) -> Vec<Event> {
    let child = RunId::parse("run_2").unwrap();
    vec![
        ChildStarted {
            call: call(1),
            tool: tool(visibility),
            visibility,
            child: child.clone(),
            expires: Some(at()),
            stream: false,
        }
        .into(),
        ChildAnswered {
            call: call(1),
            child,
            wait: wait(WaitKind::Input, 5),
            outcome: Decision::Provide,
            visibility,
            value: json!([own(visibility, "child-value")]).into(),
        }
        .into(),
    ]
}

fn others() -> Vec<Event> {
    let open =
        |kind, n, visibility| OpenWait { wait: wait(kind, n), kind, call: call(n), tool: tool(visibility) };
    let finished = |status, error, message: Option<&str>| {
        Event::from(RunFinished {
            status,
            usage: usage(),
            cost: Some(42),
            error,
            message: message.map(str::to_owned),
            detail: secret_text("detail"),
        })
    };
    vec![
        ToolsetReplaced { toolset: secret_hash("new-toolset"), model: secret_text("model") }.into(),
        MessageQueued { message: message(3), interrupt: true, foreign: true }.into(),
        MessageTaken { messages: vec![message(3), message(4)] }.into(),
        CancelRequested { reason: Some("no longer needed".into()), by: secret_actor("canceler") }.into(),
        HistoryCompacted { up_to: 40, summary: secret_text("summary"), usage: usage(), cost: Some(7) }.into(),
        PluginEmitted { plugin: "citations".into(), name: "sources".into(), value: json!([1]) }.into(),
        PluginStateSaved { plugin: secret_text("plugin"), state: secret_value("state") }.into(),
        RunPaused {
            reason: PauseReason::Client,
            waits: vec![
                open(WaitKind::Client, 1, Visibility::Public),
                open(WaitKind::Timer, 2, Visibility::Private),
            ],
        }
        .into(),
        RunPaused { reason: PauseReason::Timer, waits: vec![open(WaitKind::Timer, 2, Visibility::Private)] }
            .into(),
        finished(RunEnd::Completed, None, None),
        finished(RunEnd::Failed, Some(ErrorCode::ModelFailed), Some("The model failed.")),
        finished(RunEnd::Canceled, None, Some("Canceled by a caller.")),
    ]
}
