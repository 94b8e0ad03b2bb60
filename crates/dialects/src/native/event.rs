//! One durable event, one frame.
//!
//! Patterns name every field, without `..`: a new event or field does not
//! compile until it has a place on the wire.

use serde::Serialize;
use serde_json::value::RawValue;
use toolyard_protocol::event::{self, Event, Parent, Parked, Replayed, Trigger};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::run::RunEnd;
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::wait::{WaitKind, may_answer};
use toolyard_protocol::{OutcomeKind, RunId, SpaceId, Timestamp, Viewer};

use super::frame::{Frame, Head};
use super::parts::{is_open, part_views};
use super::wire;

/// The frame of an event on its run's stream; none if the viewer may not know of it.
pub fn frame(run: &RunId, seq: i64, at: Timestamp, event: &Event, viewer: &Viewer) -> Option<Frame> {
    let spot = Spot { id: seq, head: Head { run: Some(run), seq: Some(seq), ts: Some(at), space: None } };
    let seen = visible_to(viewer, event)?;
    Some(spot.render(&seen, viewer))
}

/// The frame of an event on its space's stream: the id is the place in the space.
pub fn space_frame(
    space: &SpaceId,
    pos: i64,
    run: &RunId,
    seq: i64,
    at: Timestamp,
    event: &Event,
    viewer: &Viewer,
) -> Option<Frame> {
    let head = Head { run: Some(run), seq: Some(seq), ts: Some(at), space: Some(space) };
    let seen = visible_to(viewer, event)?;
    Some(Spot { id: pos, head }.render(&seen, viewer))
}

/// The same bytes as the payload of [`frame`], for lists (S5). Serialize it as
/// it is: a detour over `Value` sorts the fields.
pub fn event_view(
    run: &RunId,
    seq: i64,
    at: Timestamp,
    event: &Event,
    viewer: &Viewer,
) -> Option<Box<RawValue>> {
    RawValue::from_string(frame(run, seq, at, event, viewer)?.into_data()).ok()
}

/// Where a frame stands.
#[derive(Clone, Copy)]
struct Spot<'a> {
    id: i64,
    head: Head<'a>,
}

impl<'a> Spot<'a> {
    fn write<B: Serialize>(&self, name: &'static str, body: &B) -> Frame {
        Frame::write(Some(self.id), name, self.head, body, 0)
    }

    /// `event` is already what this viewer may see.
    fn render(&self, event: &'a Event, viewer: &Viewer) -> Frame {
        match event {
            Event::RunCreated(e) => self.run_created(e),
            Event::RunStarted(event::RunStarted {}) => self.write("run.started", &wire::RunStarted {}),
            Event::StepRestarted(event::StepRestarted { step, attempt, why }) => {
                let why = why.shown().map(String::as_str);
                self.write("step.restarted", &wire::StepRestarted { step: *step, attempt: *attempt, why })
            }
            Event::ModelReplied(e) => self.model_replied(e, viewer),
            Event::Asked(e) => self.asked(e, viewer),
            Event::Answered(event::Answered {
                wait,
                kind,
                call,
                visibility,
                decision,
                edited,
                recount: _,
                by,
            }) => {
                let body = wire::WaitAnswered {
                    wait_id: wait,
                    kind: *kind,
                    tool_call_id: call,
                    decision: *decision,
                    visibility: is_open(viewer, *visibility).then_some(*visibility),
                    edited: edited.shown(),
                    by: by.shown(),
                };
                self.write("wait.answered", &body)
            }
            Event::ToolCallRequested(e) => self.tool_call_requested(e, viewer),
            Event::ToolProgressed(e) => self.tool_progressed(e, viewer),
            Event::ToolReturned(e) => self.tool_returned(e, viewer),
            Event::ReplyAmended(event::ReplyAmended { step, message, parts, show_reasoning, by }) => {
                let body = wire::MessageReplaced {
                    step: *step,
                    message_id: message,
                    parts: part_views(parts, viewer),
                    show_reasoning: *show_reasoning,
                    by: by.shown().map(String::as_str),
                };
                self.write("message-replaced", &body)
            }
            Event::ResultAmended(e) => self.result_amended(e, viewer),
            Event::ToolsetReplaced(event::ToolsetReplaced { toolset, model }) => {
                let model = model.shown().map(String::as_str);
                self.write("toolset.replaced", &wire::ToolsetReplaced { toolset: toolset.shown(), model })
            }
            Event::ChildStarted(event::ChildStarted {
                call,
                tool,
                visibility,
                child,
                expires,
                stream: _,
            }) => {
                let open = is_open(viewer, *visibility);
                let body = wire::ChildStarted {
                    tool_call_id: call,
                    tool_name: tool,
                    child_run_id: child,
                    visibility: open.then_some(*visibility),
                    expires_at: expires.filter(|_| open),
                };
                self.write("child.started", &body)
            }
            Event::ChildAsked(event::ChildAsked { call, child, wait, kind, rule, payload }) => {
                let body = wire::ChildAsked {
                    tool_call_id: call,
                    child_run_id: child,
                    wait_id: wait,
                    kind: *kind,
                    answer_rule: rule,
                    may_answer: may_answer(viewer, rule),
                    payload: payload.shown(),
                };
                self.write("child.asked", &body)
            }
            Event::ChildAnswered(event::ChildAnswered { call, child, wait, outcome, visibility, value }) => {
                let body = wire::ChildAnswered {
                    tool_call_id: call,
                    child_run_id: child,
                    wait_id: wait,
                    decision: *outcome,
                    visibility: is_open(viewer, *visibility).then_some(*visibility),
                    value: value.shown(),
                };
                self.write("child.answered", &body)
            }
            Event::MessageQueued(event::MessageQueued { message, interrupt, foreign: _ }) => self
                .write("message.queued", &wire::MessageQueued { message_id: message, interrupt: *interrupt }),
            Event::MessageTaken(event::MessageTaken { messages }) => {
                self.write("message.user", &wire::MessageUser { message_ids: messages })
            }
            Event::CancelRequested(event::CancelRequested { reason, by }) => {
                let body = wire::RunCanceling { reason: reason.as_deref(), by: by.shown() };
                self.write("run.canceling", &body)
            }
            Event::HistoryCompacted(event::HistoryCompacted { up_to, summary, usage, cost }) => {
                let summary = summary.shown().map(String::as_str);
                let body = wire::HistoryCompacted { up_to: *up_to, usage: *usage, summary, cost: *cost };
                self.write("history.compacted", &body)
            }
            Event::PluginEmitted(event::PluginEmitted { plugin, name, value }) => {
                self.write("plugin.emitted", &wire::PluginEmitted { plugin, name, value })
            }
            Event::PluginStateSaved(event::PluginStateSaved { plugin, state }) => {
                let plugin = plugin.shown().map(String::as_str);
                self.write("plugin.state", &wire::PluginState { plugin, state: state.shown() })
            }
            Event::RunPaused(e) => self.run_paused(e),
            Event::RunFinished(e) => self.run_finished(e),
        }
    }

    fn run_created(&self, event: &'a event::RunCreated) -> Frame {
        let event::RunCreated {
            agent,
            agent_version,
            toolset,
            space,
            agent_entity,
            trigger,
            branch,
            history_to,
            parent,
            root,
            depth,
            show_reasoning,
            limits,
            on_message,
            answerers,
            by,
            metadata,
            model,
            errand,
            picks,
            output,
            // It decides about permissions; readers have no use for it.
            tainted: _,
            replayed,
            // It is the operator's, who has it at the collector.
            trace: _,
        } = event;
        let (triggered_by_id, trigger_message_id) = match trigger {
            Some(Trigger { entity, message }) => (Some(entity), message.as_ref()),
            None => (None, None),
        };
        let (parent_run_id, parent_tool_call_id) = match parent {
            Some(Parent { run, call }) => (Some(run), Some(call)),
            None => (None, None),
        };
        let (replayed_run_id, replayed_step) = match replayed {
            Some(Replayed { run, step }) => (Some(run), Some(*step)),
            None => (None, None),
        };
        let body = wire::RunCreated {
            agent_name: agent,
            branch_id: branch,
            history_to: *history_to,
            root_run_id: root,
            depth: *depth,
            show_reasoning: *show_reasoning,
            agent_entity_id: agent_entity.as_ref(),
            triggered_by_id,
            trigger_message_id,
            parent_run_id,
            parent_tool_call_id,
            agent_version: agent_version.shown(),
            toolset: toolset.shown(),
            limits: limits.shown(),
            on_message: on_message.shown().copied(),
            answerers: answerers.shown().copied(),
            by: by.shown(),
            metadata: metadata.shown(),
            model: model.shown().map(String::as_str),
            errand: errand.shown(),
            picks: picks.shown(),
            output: output.shown(),
            replayed_run_id,
            replayed_step,
        };
        // The space stands in the head, on both kinds of stream.
        let head = Head { space: self.head.space.or(space.as_ref()), ..self.head };
        Frame::write(Some(self.id), "run.created", head, &body, 0)
    }

    fn model_replied(&self, event: &'a event::ModelReplied, viewer: &Viewer) -> Frame {
        let event::ModelReplied {
            step,
            message,
            parts,
            show_reasoning,
            calls,
            usage,
            cost,
            model,
            finish,
            partial,
            metadata,
        } = event;
        let call = |event::ReplyCall { call, tool, visibility, args, metadata }: &'a event::ReplyCall| {
            wire::CallView {
                tool_call_id: call,
                tool_name: tool,
                input: args.shown(),
                visibility: is_open(viewer, *visibility).then_some(*visibility),
                provider_metadata: metadata.shown(),
            }
        };
        let body = wire::MessageAssistant {
            step: *step,
            message_id: message,
            parts: part_views(parts, viewer),
            tool_calls: calls.iter().map(call).collect(),
            usage: *usage,
            finish_reason: *finish,
            show_reasoning: *show_reasoning,
            partial: *partial,
            cost: *cost,
            model: model.shown().map(String::as_str),
            provider_metadata: metadata.shown(),
        };
        self.write("message.assistant", &body)
    }

    fn asked(&self, event: &'a event::Asked, viewer: &Viewer) -> Frame {
        let event::Asked {
            wait,
            kind,
            step,
            call,
            tool,
            place,
            risk,
            visibility,
            rule,
            expires,
            payload,
            fingerprint,
            // The far side's own note: it goes back there and nowhere else.
            state: _,
            held: _,
        } = event;
        let body = wire::Asked {
            tool_call_id: call,
            tool_name: tool,
            wait_id: wait,
            kind: *kind,
            step: *step,
            execution_target: place.target(),
            risk: *risk,
            visibility: *visibility,
            answer_rule: rule,
            may_answer: may_answer(viewer, rule),
            expires_at: *expires,
            payload: payload.shown(),
            fingerprint: fingerprint.shown(),
        };
        let name = match kind {
            WaitKind::Credential => "auth-required",
            WaitKind::Input => "input-required",
            // Only these three are ever asked; the rest would ask for a decision.
            WaitKind::Approval | WaitKind::Client | WaitKind::Child | WaitKind::Timer => {
                "tool-approval-request"
            }
        };
        self.write(name, &body)
    }

    fn tool_call_requested(&self, event: &'a event::ToolCallRequested, viewer: &Viewer) -> Frame {
        let event::ToolCallRequested {
            step,
            call,
            tool,
            place,
            risk,
            visibility,
            idempotent,
            wait,
            expires,
            untrusted,
            args,
            fingerprint,
        } = event;
        let open = is_open(viewer, *visibility);
        let parked = wait.as_ref().filter(|_| open);
        let (wait_id, kind, answer_rule, payload) = match parked {
            Some(Parked { wait, kind, rule, payload }) => {
                (Some(wait), Some(*kind), Some(rule), payload.shown())
            }
            None => (None, None, None, None),
        };
        let body = wire::ToolInputAvailable {
            tool_call_id: call,
            tool_name: tool,
            input: args.shown(),
            execution_target: open.then_some(place.target()),
            step: open.then_some(*step),
            risk: open.then_some(*risk),
            visibility: open.then_some(*visibility),
            idempotent: open.then_some(*idempotent),
            untrusted: open.then_some(*untrusted),
            expires_at: expires.filter(|_| open),
            wait_id,
            kind,
            answer_rule,
            may_answer: answer_rule.map(|rule| may_answer(viewer, rule)),
            payload,
            fingerprint: fingerprint.shown(),
        };
        self.write("tool-input-available", &body)
    }

    fn tool_progressed(&self, event: &'a event::ToolProgressed, viewer: &Viewer) -> Frame {
        // The ticket and the account are the gateway's own.
        let event::ToolProgressed {
            call,
            tool,
            visibility,
            fraction,
            message,
            preliminary,
            ticket: _,
            spent: _,
        } = event;
        let open = is_open(viewer, *visibility);
        let body = wire::ToolProgress {
            tool_call_id: call,
            tool_name: tool,
            visibility: open.then_some(*visibility),
            fraction: fraction.filter(|_| open),
            message: message.shown().map(String::as_str),
            preliminary: preliminary.shown(),
        };
        self.write("tool.progress", &body)
    }

    fn tool_returned(&self, event: &'a event::ToolReturned, viewer: &Viewer) -> Frame {
        let event::ToolReturned {
            call,
            tool,
            visibility,
            outcome,
            untrusted,
            recount: _,
            value,
            blob,
            error,
            code,
            by,
            spent,
        } = event;
        let open = is_open(viewer, *visibility);
        let source = by.shown().map(|by| match by {
            Actor::Caller { .. } => "client",
            Actor::Gateway {} => "server",
        });
        let body = wire::ToolOutput {
            tool_call_id: call,
            tool_name: tool,
            output: value.shown(),
            blob: blob.shown(),
            error: error.shown().map(String::as_str),
            code: *code,
            outcome: open.then_some(*outcome),
            visibility: open.then_some(*visibility),
            untrusted: open.then_some(*untrusted),
            source,
            by: by.shown(),
            spent: spent.shown().copied(),
        };
        let name = match outcome {
            OutcomeKind::Ok => "tool-output-available",
            OutcomeKind::Failed
            | OutcomeKind::Denied
            | OutcomeKind::Expired
            | OutcomeKind::Canceled
            | OutcomeKind::Uncertain => "tool-error",
        };
        self.write(name, &body)
    }

    fn result_amended(&self, event: &'a event::ResultAmended, viewer: &Viewer) -> Frame {
        let event::ResultAmended { call, tool, visibility, outcome, value, error, untrusted, by } = event;
        let open = is_open(viewer, *visibility);
        let body = wire::ToolOutputAmended {
            tool_call_id: call,
            tool_name: tool,
            output: value.shown(),
            error: error.shown().map(String::as_str),
            outcome: open.then_some(*outcome),
            visibility: open.then_some(*visibility),
            untrusted: open.then_some(*untrusted),
            by: by.shown().map(String::as_str),
        };
        self.write("tool-output-amended", &body)
    }

    fn run_paused(&self, event: &'a event::RunPaused) -> Frame {
        let event::RunPaused { reason, waits } = event;
        let pending = |event::OpenWait { wait, kind, call, tool }: &'a event::OpenWait| {
            wire::PendingToolCall { tool_call_id: call, tool_name: tool, wait_id: wait, kind: *kind }
        };
        let body =
            wire::RunPaused { reason: *reason, pending_tool_calls: waits.iter().map(pending).collect() };
        let name = if reason.needs_someone() { "run.waiting_tool" } else { "run.parked" };
        self.write(name, &body)
    }

    fn run_finished(&self, event: &'a event::RunFinished) -> Frame {
        let event::RunFinished { status, usage, cost, error, message, detail } = event;
        let message = message.as_deref();
        let body = wire::RunFinished {
            status: *status,
            usage: *usage,
            cost: *cost,
            error: error.map(|code| wire::RunError { code, message }),
            message: message.filter(|_| error.is_none()),
            detail: detail.shown().map(String::as_str),
        };
        let name = match status {
            RunEnd::Completed => "run.completed",
            RunEnd::Failed => "run.failed",
            RunEnd::Canceled => "run.canceled",
        };
        self.write(name, &body)
    }
}
