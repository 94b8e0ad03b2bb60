//! The calls of a run: when a client hears of them, and what it may see.

use toolyard_protocol::event::{
    Asked, ChildAsked, ChildStarted, ReplyCall, ResultAmended, ToolCallRequested, ToolReturned,
};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, OutcomeKind, ToolName};

use serde_json::Value;

use super::input::Version;
use super::names;
use super::pause;
use super::restore::result_text;
use super::telling::{AgUi, Question};
use super::wire::{SubagentOutcome, WireEvent};

/// What stands for arguments that a key may not see.
const NO_ARGS: &str = "{}";

impl AgUi {
    /// The model begins to write a call.
    pub(super) fn start_call(&mut self, call: &CallId, tool: &ToolName, out: &mut String) {
        if self.open.held_back.contains(tool) || self.knows(call) {
            return;
        }
        let Some(parent) = self.step.as_ref().map(|step| step.message.clone()) else { return };
        self.announce(&parent, call, tool, out);
    }

    fn announce(&mut self, parent: &str, call: &CallId, tool: &ToolName, out: &mut String) {
        self.begin_step(out);
        if self.keeps() {
            self.transcript.add_call(parent, call.as_str(), tool.as_str());
        }
        self.announced.insert(call.clone());
        self.open_calls.push(call.clone());
        let event = WireEvent::ToolCallStart {
            tool_call_id: call.as_str(),
            tool_call_name: tool.as_str(),
            parent_message_id: parent,
        };
        self.tell(event, out);
    }

    pub(super) fn grow_input(&mut self, call: &CallId, more: &str, out: &mut String) {
        if self.open_calls.contains(call) {
            if self.keeps() {
                self.transcript.grow_args(call.as_str(), more);
            }
            self.tell(WireEvent::ToolCallArgs { tool_call_id: call.as_str(), delta: more }, out);
        }
    }

    fn end_call(&mut self, call: &CallId, out: &mut String) {
        if self.open_calls.contains(call) {
            self.open_calls.retain(|open| open != call);
            self.tell(WireEvent::ToolCallEnd { tool_call_id: call.as_str() }, out);
        }
    }

    /// A whole call at once.
    fn announce_whole(
        &mut self,
        parent: &str,
        call: &CallId,
        tool: &ToolName,
        args: Option<&Value>,
        out: &mut String,
    ) {
        self.announce(parent, call, tool, out);
        let args = args.map_or_else(|| NO_ARGS.to_owned(), Value::to_string);
        self.grow_input(call, &args, out);
        self.end_call(call, out);
    }

    /// The calls as the reply holds them: what was streamed is made whole.
    pub(super) fn reply_calls(&mut self, calls: &[ReplyCall], out: &mut String) {
        let Some(parent) = self.step.as_ref().map(|step| step.message.clone()) else { return };
        for ReplyCall { call, tool, visibility: _, args, metadata: _ } in calls {
            if !self.knows(call) {
                if !self.open.held_back.contains(tool) {
                    self.announce_whole(&parent, call, tool, args.shown(), out);
                }
                continue;
            }
            let streamed = self.transcript.args(call.as_str());
            let whole = args.shown().map_or_else(|| NO_ARGS.to_owned(), Value::to_string);
            if streamed.is_empty() {
                self.grow_input(call, &whole, out);
            } else if serde_json::from_str::<Value>(&streamed).ok().as_ref() != args.shown() && self.keeps() {
                // A hook changed them.
                self.transcript.set_args(call.as_str(), &whole);
                self.wrong = true;
            }
            self.end_call(call, out);
        }
        // What the model began and did not finish is no call: a client must not run it.
        for call in std::mem::take(&mut self.open_calls) {
            self.tell(WireEvent::ToolCallEnd { tool_call_id: call.as_str() }, out);
            if self.keeps() {
                self.transcript.remove_call(call.as_str());
                self.wrong = true;
            }
        }
    }

    /// A call waits for a person. What runs on the gateway is shown as a call;
    /// what a client would run is not, before it may.
    pub(super) fn asked(&mut self, e: &Asked, out: &mut String) {
        if !e.place.is_client() && !self.knows(&e.call) {
            let args = e.payload.shown().and_then(|payload| payload.get("args"));
            self.announce_whole(&self.step_message(e.step), &e.call, &e.tool, args, out);
        }
        let announced = self.knows(&e.call);
        let interrupt = pause::asked(e, announced);
        self.questions.push(Question { wait: e.wait.clone(), call: e.call.clone(), interrupt });
    }

    pub(super) fn child_asked(&mut self, e: &ChildAsked) {
        let interrupt = pause::child_asked(e);
        self.questions.push(Question { wait: e.wait.clone(), call: e.call.clone(), interrupt });
    }

    pub(super) fn requested(&mut self, e: &ToolCallRequested, out: &mut String) {
        if !self.knows(&e.call) {
            let step = self.step_message(e.step);
            // Clients run the calls of messages that are new to them.
            let parent = match self.had.contains(&step) {
                true => names::late_call(&self.turn_message(), e.step, &e.call),
                false => step,
            };
            self.announce_whole(&parent, &e.call, &e.tool, e.args.shown(), out);
        }
        let waits = e.wait.as_ref().is_some_and(|parked| parked.kind == WaitKind::Client);
        if waits {
            self.clients.push(e.call.clone());
        }
    }

    pub(super) fn returned(&mut self, e: &ToolReturned, out: &mut String) {
        self.questions.retain(|question| question.call != e.call);
        self.clients.retain(|call| *call != e.call);
        self.end_child(e, out);
        // Who never heard of the call does not hear of its end.
        if !self.knows(&e.call) || self.open.brought.contains(e.call.as_str()) {
            return;
        }
        let content = result_text(e.outcome, &e.value, &e.error);
        let id = names::result(&e.call);
        if self.had.contains(&id) {
            return;
        }
        if self.keeps() {
            self.transcript.set_result(&id, e.call.as_str(), &content);
        }
        let event = WireEvent::ToolCallResult {
            message_id: &id,
            tool_call_id: e.call.as_str(),
            content: &content,
            role: "tool",
        };
        self.tell(event, out);
    }

    pub(super) fn result_amended(&mut self, e: &ResultAmended, out: &mut String) {
        if !self.keeps() || !self.transcript.has_result(e.call.as_str()) {
            return;
        }
        let content = result_text(e.outcome, &e.value, &e.error);
        self.transcript.set_result(&names::result(&e.call), e.call.as_str(), &content);
        self.wrong = true;
        self.mend(out);
    }

    /// Clients before 1.0 have no use for it.
    pub(super) fn child_started(&mut self, e: &ChildStarted, out: &mut String) {
        if self.open.version == Version::Zero {
            return;
        }
        self.children.push((e.call.clone(), e.child.clone()));
        let event = WireEvent::SubagentStarted {
            subagent_run_id: e.child.as_str(),
            name: e.tool.as_str(),
            parent_tool_call_id: e.call.as_str(),
        };
        self.tell(event, out);
    }

    fn end_child(&mut self, e: &ToolReturned, out: &mut String) {
        let Some(place) = self.children.iter().position(|(call, _)| *call == e.call) else { return };
        let (_, child) = self.children.remove(place);
        let subagent_run_id = child.as_str();
        if e.outcome == OutcomeKind::Ok {
            let outcome = SubagentOutcome::Success {};
            self.tell(WireEvent::SubagentFinished { subagent_run_id, outcome }, out);
        } else {
            let message = e.error.shown().map_or("The agent did not finish", String::as_str);
            self.tell(WireEvent::SubagentError { subagent_run_id, message }, out);
        }
    }
}
