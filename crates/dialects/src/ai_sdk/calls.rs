//! The calls of a message, as a chat client hears of them.

use serde_json::{Value, json};
use toolyard_protocol::event::{Asked, ModelReplied, ToolProgressed, ToolReturned};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, OutcomeKind, ToolName};

use super::chunk::{Chunk, Voice};
use super::telling::ChatTelling;

/// What a hidden error is.
const HIDDEN_ERROR: &str = "Tool failed";

/// A call of the message that is told.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) tool: ToolName,
    pub(super) input: Value,
    /// Its beginning was said.
    pub(super) started: bool,
    /// Its input was said as a whole.
    pub(super) available: bool,
    /// Somebody was asked about it, or it may run.
    pub(super) routed: bool,
    pub(super) asked: bool,
    /// The last news of a call that is not announced yet.
    progress: Option<Value>,
}

impl<V: Voice> ChatTelling<V> {
    pub(super) fn known(&mut self, call: &CallId, tool: &ToolName) -> &mut Known {
        self.calls.entry(call.clone()).or_insert_with(|| Known {
            tool: tool.clone(),
            input: json!({}),
            started: false,
            available: false,
            routed: false,
            asked: false,
            progress: None,
        })
    }

    /// What every reader must know of a reply, also if it is not told.
    pub(super) fn note_reply(&mut self, reply: &ModelReplied, seen: &ModelReplied) {
        self.usage = reply.usage;
        self.total.add(&reply.usage);
        for call in &seen.calls {
            let announced = self.options.announced.contains(&call.call);
            let known = self.known(&call.call, &call.tool);
            known.input = call.args.shown().cloned().unwrap_or_else(|| json!({}));
            known.available |= announced;
        }
    }

    pub(super) fn announce(&mut self, call: &CallId, out: &mut String) {
        let Some(known) = self.calls.get_mut(call).filter(|known| !known.available) else { return };
        known.available = true;
        known.started = true;
        let (tool, input) = (known.tool.clone(), known.input.clone());
        self.open_message(out);
        self.voice.say(&Chunk::InputAvailable { call, tool: &tool, input: &input }, out);
    }

    /// Shows what a call is about, and not that it may run.
    pub(super) fn begin_call(&mut self, call: &CallId, tool: &ToolName, out: &mut String) {
        self.open_message(out);
        let known = self.known(call, tool);
        if known.started || known.available {
            return;
        }
        known.started = true;
        let input = known.input.to_string();
        self.voice.say(&Chunk::InputStart { call, tool }, out);
        self.voice.say(&Chunk::Input { call, text: &input }, out);
    }

    pub(super) fn asked(&mut self, asked: &Asked, out: &mut String) {
        let args = asked.payload.shown().and_then(|p| p.get("args")).filter(|args| !args.is_null()).cloned();
        let known = self.known(&asked.call, &asked.tool);
        known.routed = true;
        if let Some(args) = args {
            known.input = args;
        }
        if self.options.questions.contains(&asked.wait) {
            // Said before; a gateway's call was also announced before it was asked about.
            let client = asked.place.is_client();
            let known = self.known(&asked.call, &asked.tool);
            (known.asked, known.started) = (true, true);
            known.available |= !client;
            return;
        }
        match asked.kind {
            WaitKind::Approval => self.asked_to_allow(asked, out),
            WaitKind::Input | WaitKind::Credential => {
                self.open_message(out);
                let data = json!({
                    "waitId": asked.wait, "kind": asked.kind, "toolCallId": asked.call, "toolName": asked.tool,
                    "expiresAt": asked.expires, "request": asked.payload.shown(),
                });
                self.data("input-required", asked.wait.as_str(), data, out);
            }
            WaitKind::Client | WaitKind::Child | WaitKind::Timer => {}
        }
    }

    pub(super) fn asked_to_allow(&mut self, asked: &Asked, out: &mut String) {
        if asked.place.is_client() {
            // A real client runs a tool whose input is available.
            self.begin_call(&asked.call, &asked.tool, out);
        } else {
            self.announce(&asked.call, out);
        }
        self.known(&asked.call, &asked.tool).asked = true;
        if self.options.without_approvals {
            let input = self.known(&asked.call, &asked.tool).input.clone();
            let data = json!({
                "approvalId": asked.wait, "toolCallId": asked.call, "toolName": asked.tool, "risk": asked.risk,
                "expiresAt": asked.expires, "input": input,
            });
            return self.data("permission-required", asked.wait.as_str(), data, out);
        }
        self.voice.say(&Chunk::ApprovalRequest { wait: &asked.wait, call: &asked.call }, out);
    }

    pub(super) fn data(&mut self, name: &str, id: &str, data: Value, out: &mut String) {
        self.open_message(out);
        self.voice.say(&Chunk::Data { name, id: Some(id), data, transient: false }, out);
    }

    pub(super) fn progressed(&mut self, news: &ToolProgressed, out: &mut String) {
        let Some(known) = self.calls.get_mut(&news.call) else { return };
        known.progress = Some(match news.preliminary.shown() {
            Some(value) => value.clone(),
            None => {
                let mut told = json!({});
                if let Some(fraction) = news.fraction {
                    told["progress"] = json!(fraction);
                }
                if let Some(message) = news.message.shown() {
                    told["message"] = json!(message);
                }
                told
            }
        });
        if known.available {
            self.tell_progress(&news.call, out);
        }
    }

    pub(super) fn tell_progress(&mut self, call: &CallId, out: &mut String) {
        let Some(output) = self.calls.get_mut(call).and_then(|known| known.progress.take()) else { return };
        self.open_message(out);
        self.voice.say(&Chunk::Output { call, output: &output, preliminary: true }, out);
    }

    pub(super) fn returned(&mut self, end: &ToolReturned, out: &mut String) {
        // A call that is not part of this message would end the client's chat.
        let Some(known) = self.calls.get(&end.call).cloned() else { return };
        if self.options.kept.contains(&end.call) {
            return;
        }
        self.open_message(out);
        let error = end.error.shown().map_or(HIDDEN_ERROR, String::as_str);
        let (call, tool) = (&end.call, &known.tool);
        let ended = self.waiting.iter().position(|waiting| waiting == call);
        if let Some(ended) = ended {
            self.waiting.swap_remove(ended);
            if self.voice.knows_bare_results() {
                self.begin_call(call, tool, out);
            } else {
                self.announce(call, out);
            }
        }
        let known = self.known(call, tool).clone();
        if !known.routed && !known.available && end.outcome == OutcomeKind::Failed {
            self.known(call, tool).available = true;
            let chunk = Chunk::InputError { call, tool, input: &known.input, error };
            return self.voice.say(&chunk, out);
        }
        // What never ran may still be a bare beginning.
        let denied = end.outcome == OutcomeKind::Denied && known.asked && !self.options.without_approvals;
        if !denied && !known.available && !known.started {
            self.announce(call, out);
        }
        let null = Value::Null;
        let chunk = match end.outcome {
            OutcomeKind::Ok => {
                Chunk::Output { call, output: end.value.shown().unwrap_or(&null), preliminary: false }
            }
            OutcomeKind::Denied if denied => Chunk::OutputDenied { call, error },
            OutcomeKind::Denied
            | OutcomeKind::Failed
            | OutcomeKind::Expired
            | OutcomeKind::Canceled
            | OutcomeKind::Uncertain => Chunk::OutputError { call, error },
        };
        self.voice.say(&chunk, out);
    }
}
