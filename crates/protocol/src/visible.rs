//! `visible_to`: the only place that decides what a key sees, on streams,
//! replays, lists, snapshots and every dialect.
//!
//! Each pattern names every field, without `..` and `_`: a new event or field
//! does not compile until it is classified here.

use std::borrow::Cow;

use serde_json::Value;

use crate::delta::{Delta, Piece};
use crate::event::*;
use crate::guarded::Guarded;
use crate::message::{Message, Part};
use crate::principal::Viewer;
use crate::tool::Visibility;
use crate::wait::{AnswerRule, WaitKind, may_answer};

/// The event as this viewer may see it; none if it may not know of it.
pub fn visible_to<'e>(viewer: &Viewer, event: &'e Event) -> Option<Cow<'e, Event>> {
    if viewer.sees_all() {
        return Some(Cow::Borrowed(event));
    }
    public_view(viewer, event).map(Cow::Owned)
}

/// Secret: no public key sees it.
fn secret<T>(_: &Guarded<T>) -> Guarded<T> {
    Guarded::Hidden
}

/// Follows the tool.
fn tool<T: Clone>(visibility: Visibility, field: &Guarded<T>) -> Guarded<T> {
    match visibility {
        Visibility::Public => field.clone(),
        Visibility::Private => Guarded::Hidden,
    }
}

/// For those who may answer.
fn answer<T: Clone>(viewer: &Viewer, rule: &AnswerRule, field: &Guarded<T>) -> Guarded<T> {
    if may_answer(viewer, rule) { field.clone() } else { Guarded::Hidden }
}

fn public_view(viewer: &Viewer, event: &Event) -> Option<Event> {
    Some(match event {
        Event::RunCreated(RunCreated {
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
            tainted,
            replayed,
            trace,
        }) => Event::RunCreated(RunCreated {
            agent: agent.clone(),
            agent_version: secret(agent_version),
            toolset: secret(toolset),
            space: space.clone(),
            agent_entity: agent_entity.clone(),
            trigger: trigger.clone(),
            branch: branch.clone(),
            history_to: *history_to,
            parent: parent.clone(),
            root: root.clone(),
            depth: *depth,
            show_reasoning: *show_reasoning,
            limits: secret(limits),
            on_message: secret(on_message),
            answerers: secret(answerers),
            by: secret(by),
            metadata: secret(metadata),
            model: secret(model),
            errand: secret(errand),
            picks: secret(picks),
            output: secret(output),
            tainted: *tainted,
            replayed: replayed.clone(),
            trace: secret(trace),
        }),
        Event::RunStarted(RunStarted {}) => Event::RunStarted(RunStarted {}),
        Event::StepRestarted(StepRestarted { step, attempt, why }) => {
            Event::StepRestarted(StepRestarted { step: *step, attempt: *attempt, why: secret(why) })
        }
        Event::ModelReplied(ModelReplied {
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
        }) => Event::ModelReplied(ModelReplied {
            step: *step,
            message: message.clone(),
            parts: public_parts(parts, *show_reasoning),
            show_reasoning: *show_reasoning,
            calls: calls.iter().map(public_call).collect(),
            usage: *usage,
            cost: *cost,
            model: secret(model),
            finish: *finish,
            partial: *partial,
            metadata: secret(metadata),
        }),
        Event::Asked(Asked {
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
            state,
            held,
        }) => Event::Asked(Asked {
            wait: wait.clone(),
            kind: *kind,
            step: *step,
            call: call.clone(),
            tool: tool.clone(),
            place: *place,
            risk: *risk,
            visibility: *visibility,
            rule: rule.clone(),
            expires: *expires,
            payload: answer(viewer, rule, payload),
            fingerprint: secret(fingerprint),
            state: secret(state),
            held: *held,
        }),
        Event::Answered(Answered { wait, kind, call, visibility, decision, edited, recount, by }) => {
            Event::Answered(Answered {
                wait: wait.clone(),
                kind: *kind,
                call: call.clone(),
                visibility: *visibility,
                decision: *decision,
                edited: match kind {
                    // A credential is nobody's to see, whatever the tool's class.
                    WaitKind::Credential => secret(edited),
                    WaitKind::Client
                    | WaitKind::Approval
                    | WaitKind::Input
                    | WaitKind::Child
                    | WaitKind::Timer => tool(*visibility, edited),
                },
                recount: *recount,
                by: secret(by),
            })
        }
        Event::ToolCallRequested(ToolCallRequested {
            step,
            call,
            tool: name,
            place,
            risk,
            visibility,
            idempotent,
            wait,
            expires,
            untrusted,
            args,
            fingerprint,
        }) => Event::ToolCallRequested(ToolCallRequested {
            step: *step,
            call: call.clone(),
            tool: name.clone(),
            place: *place,
            risk: *risk,
            visibility: *visibility,
            idempotent: *idempotent,
            wait: wait.as_ref().map(public_parked),
            expires: *expires,
            untrusted: *untrusted,
            args: tool(*visibility, args),
            fingerprint: secret(fingerprint),
        }),
        Event::ToolProgressed(ToolProgressed {
            call,
            tool: name,
            visibility,
            fraction,
            message,
            preliminary,
            ticket,
            spent,
        }) => Event::ToolProgressed(ToolProgressed {
            call: call.clone(),
            tool: name.clone(),
            visibility: *visibility,
            fraction: *fraction,
            message: tool(*visibility, message),
            preliminary: tool(*visibility, preliminary),
            ticket: secret(ticket),
            spent: secret(spent),
        }),
        Event::ToolReturned(ToolReturned {
            call,
            tool: name,
            visibility,
            outcome,
            untrusted,
            recount,
            value,
            blob,
            error,
            code,
            by,
            spent,
        }) => Event::ToolReturned(ToolReturned {
            call: call.clone(),
            tool: name.clone(),
            visibility: *visibility,
            outcome: *outcome,
            untrusted: *untrusted,
            recount: *recount,
            value: tool(*visibility, value),
            blob: tool(*visibility, blob),
            error: tool(*visibility, error),
            code: *code,
            by: secret(by),
            spent: tool(*visibility, spent),
        }),
        Event::ReplyAmended(ReplyAmended { step, message, parts, show_reasoning, by }) => {
            Event::ReplyAmended(ReplyAmended {
                step: *step,
                message: message.clone(),
                parts: public_parts(parts, *show_reasoning),
                show_reasoning: *show_reasoning,
                by: secret(by),
            })
        }
        Event::ResultAmended(ResultAmended {
            call,
            tool: name,
            visibility,
            outcome,
            value,
            error,
            untrusted,
            by,
        }) => Event::ResultAmended(ResultAmended {
            call: call.clone(),
            tool: name.clone(),
            visibility: *visibility,
            outcome: *outcome,
            value: tool(*visibility, value),
            error: tool(*visibility, error),
            untrusted: *untrusted,
            by: secret(by),
        }),
        Event::ToolsetReplaced(ToolsetReplaced { toolset, model }) => {
            Event::ToolsetReplaced(ToolsetReplaced { toolset: secret(toolset), model: secret(model) })
        }
        Event::ChildStarted(ChildStarted { call, tool: name, visibility, child, expires, stream }) => {
            Event::ChildStarted(ChildStarted {
                call: call.clone(),
                tool: name.clone(),
                visibility: *visibility,
                child: child.clone(),
                expires: *expires,
                stream: *stream,
            })
        }
        Event::ChildAsked(ChildAsked { call, child, wait, kind, rule, payload }) => {
            Event::ChildAsked(ChildAsked {
                call: call.clone(),
                child: child.clone(),
                wait: wait.clone(),
                kind: *kind,
                rule: rule.clone(),
                payload: answer(viewer, rule, payload),
            })
        }
        Event::ChildAnswered(ChildAnswered { call, child, wait, outcome, visibility, value }) => {
            Event::ChildAnswered(ChildAnswered {
                call: call.clone(),
                child: child.clone(),
                wait: wait.clone(),
                outcome: *outcome,
                visibility: *visibility,
                value: tool(*visibility, value),
            })
        }
        Event::MessageQueued(MessageQueued { message, interrupt, foreign }) => {
            let (interrupt, foreign) = (*interrupt, *foreign);
            Event::MessageQueued(MessageQueued { message: message.clone(), interrupt, foreign })
        }
        Event::MessageTaken(MessageTaken { messages }) => {
            Event::MessageTaken(MessageTaken { messages: messages.clone() })
        }
        Event::CancelRequested(CancelRequested { reason, by }) => {
            Event::CancelRequested(CancelRequested { reason: reason.clone(), by: secret(by) })
        }
        Event::HistoryCompacted(HistoryCompacted { up_to, summary, usage, cost }) => {
            Event::HistoryCompacted(HistoryCompacted {
                up_to: *up_to,
                summary: secret(summary),
                usage: *usage,
                cost: *cost,
            })
        }
        Event::PluginEmitted(PluginEmitted { plugin, name, value }) => Event::PluginEmitted(PluginEmitted {
            plugin: plugin.clone(),
            name: name.clone(),
            value: value.clone(),
        }),
        // All of it is secret: a public key does not learn that it happened.
        Event::PluginStateSaved(PluginStateSaved { plugin: _, state: _ }) => return None,
        Event::RunPaused(RunPaused { reason, waits }) => {
            Event::RunPaused(RunPaused { reason: *reason, waits: waits.iter().map(public_open).collect() })
        }
        Event::RunFinished(RunFinished { status, usage, cost, error, message, detail }) => {
            Event::RunFinished(RunFinished {
                status: *status,
                usage: *usage,
                cost: *cost,
                error: *error,
                message: message.clone(),
                detail: secret(detail),
            })
        }
    })
}

fn public_open(OpenWait { wait, kind, call, tool }: &OpenWait) -> OpenWait {
    OpenWait { wait: wait.clone(), kind: *kind, call: call.clone(), tool: tool.clone() }
}

fn public_parked(Parked { wait, kind, rule, payload }: &Parked) -> Parked {
    Parked { wait: wait.clone(), kind: *kind, rule: rule.clone(), payload: secret(payload) }
}

fn public_call(ReplyCall { call, tool: name, visibility, args, metadata }: &ReplyCall) -> ReplyCall {
    ReplyCall {
        call: call.clone(),
        tool: name.clone(),
        visibility: *visibility,
        args: tool(*visibility, args),
        metadata: secret(metadata),
    }
}

fn public_parts(parts: &[Part], show_reasoning: bool) -> Vec<Part> {
    parts.iter().filter_map(|part| public_part(part, show_reasoning)).collect()
}

fn public_part(part: &Part, show_reasoning: bool) -> Option<Part> {
    Some(match part {
        Part::Text { text } => Part::Text { text: text.clone() },
        Part::Reasoning { text, metadata } => {
            if !show_reasoning {
                return None;
            }
            Part::Reasoning { text: text.clone(), metadata: secret(metadata) }
        }
        Part::File { media_type, file, url, name } => Part::File {
            media_type: media_type.clone(),
            file: file.clone(),
            url: url.clone(),
            name: name.clone(),
        },
        Part::Source { id, url, title, start_index, end_index } => Part::Source {
            id: id.clone(),
            url: url.clone(),
            title: title.clone(),
            start_index: *start_index,
            end_index: *end_index,
        },
        Part::ToolCall { call, tool: name, visibility, args, metadata } => Part::ToolCall {
            call: call.clone(),
            tool: name.clone(),
            visibility: *visibility,
            args: tool(*visibility, args),
            metadata: secret(metadata),
        },
        Part::ToolResult { call, tool: name, visibility, outcome, value, error } => Part::ToolResult {
            call: call.clone(),
            tool: name.clone(),
            visibility: *visibility,
            outcome: *outcome,
            value: tool(*visibility, value),
            error: tool(*visibility, error),
        },
        Part::Data { name, value } => Part::Data { name: name.clone(), value: value.clone() },
        // Nothing of it is left for a public key.
        Part::Opaque { value: _ } => return None,
    })
}

/// A message as this viewer may see it.
pub fn visible_message<'m>(viewer: &Viewer, message: &'m Message) -> Cow<'m, Message> {
    if viewer.sees_all() {
        return Cow::Borrowed(message);
    }
    let mut seen = message.clone();
    seen.parts = public_parts(&message.parts, message.show_reasoning);
    // A backend's notes are its own; a person sees what they sent themselves.
    if message.entity.is_none() || message.entity != viewer.entity {
        seen.metadata = None;
    }
    Cow::Owned(seen)
}

/// May this viewer see this streaming piece? A private tool's name is public,
/// its input is not (row G32). Every field is named here: a new one does not
/// compile until it is classified.
pub fn visible_delta(viewer: &Viewer, delta: &Delta) -> bool {
    if viewer.sees_all() {
        return true;
    }
    let Delta { run: _, step: _, attempt: _, offset: _, piece } = delta;
    match piece {
        Piece::TextStart { part: _ }
        | Piece::TextDelta { part: _, text: _ }
        | Piece::TextEnd { part: _ }
        | Piece::ToolInputStart { call: _, tool: _, visibility: _ } => true,
        Piece::ReasoningStart { part: _, public }
        | Piece::ReasoningDelta { part: _, public, text: _ }
        | Piece::ReasoningEnd { part: _, public } => *public,
        Piece::ToolInputDelta { call: _, tool: _, visibility, text: _ } => *visibility == Visibility::Public,
    }
}

/// The payload of a wait, for those who may answer it.
pub fn visible_payload<'p>(viewer: &Viewer, rule: &AnswerRule, payload: &'p Value) -> Option<&'p Value> {
    may_answer(viewer, rule).then_some(payload)
}
