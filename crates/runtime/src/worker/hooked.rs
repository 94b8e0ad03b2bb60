//! The agent's plugins at work on a run: between what comes from outside and
//! what the engine hears. Events hold the hooked value. What plugins make of a
//! prompt is next door (`prompted`).

use std::collections::HashMap;

use serde_json::{Value, json};
use toolyard_engine::{Input, Note, Reply};
use toolyard_plugins::hooks::{
    Answer, Called, Chain, Cited, Ended, Left, Ran, Scene, Spoken, State, Stopped,
};
use toolyard_protocol::event::{PluginEmitted, PluginStateSaved, ReplyAmended, ResultAmended};
use toolyard_protocol::manifest::HookName;
use toolyard_protocol::message::{Part, text_of};
use toolyard_protocol::outcome::OutcomeKind;
use toolyard_protocol::{CallId, ErrorCode, Guarded, ToolOutcome, limits};
use toolyard_schema::parse_arguments;
use toolyard_store::failpoint;

use super::draft::RawCall;
use super::{Stop, Worker};

/// Plugins of one run remember together: their state has one name.
pub(crate) const TOGETHER: &str = "run";
/// The name of another state, the gateway's own: the step whose results the
/// plugins have seen in the log. Whoever takes the run over must not show them
/// again what they have changed already.
const SEEN: &str = "results";

impl Worker {
    /// The plugins, with what they remember of this run.
    pub(super) fn chain(&self) -> Chain {
        let hooks = self.hooks.as_ref().map(|hooks| hooks.all.clone()).unwrap_or_default();
        let state = match self.run.plugin_state(TOGETHER) {
            Some(Value::Object(state)) => state.clone(),
            _ => State::new(),
        };
        // Most agents have no plugins: nobody asks for the vendor then.
        let (vendor, model) = if hooks.is_empty() { Default::default() } else { self.asked_first() };
        Chain::new(hooks, self.scene(vendor, model), state)
    }

    pub(super) fn scene(&self, vendor: String, model: String) -> Scene {
        let created = self.run.created();
        Scene {
            run: self.id.clone(),
            agent: created.map(|c| c.agent.to_string()).unwrap_or_default(),
            client: self.works_for(),
            thread: created.and_then(|c| c.space.clone()),
            provider: vendor,
            model,
            spoken: None,
            message: self.run.message().to_string(),
            step: self.run.step(),
            // A later turn has a request of its own.
            trace: created.filter(|_| self.run.turns().len() <= 1).and_then(|c| c.trace.shown().cloned()),
        }
    }

    /// The run's model, with the kind of provider that it is of.
    pub(super) fn asked_first(&self) -> (String, String) {
        let Ok(agent) = &self.agent else { return Default::default() };
        let registry = &self.rt.registry;
        let Some((provider, model)) = registry.first(&self.wanted(agent)) else { return Default::default() };
        (registry.providers().vendor(provider).to_owned(), model.to_owned())
    }

    /// A critical plugin stopped the run.
    pub(super) async fn stopped(&mut self, stopped: Stopped) -> Result<(), Stop> {
        let text = sentence(&stopped);
        self.fail(ErrorCode::PluginFailed, &text, stopped.error.to_string()).await
    }

    /// What the plugins make of a whole reply. None if one of them stopped the run.
    pub(super) async fn hooked(
        &mut self,
        mut chain: Chain,
        held: bool,
        mut reply: Reply,
        calls: Vec<RawCall>,
    ) -> Result<Option<(Reply, Vec<RawCall>, HashMap<CallId, String>)>, Stop> {
        let mut skipped = HashMap::new();
        let mut parts = reply.parts.clone();
        let mut routed = Vec::with_capacity(calls.len());
        let ends = calls.is_empty() && chain.has(HookName::OnAgentResponse);
        let answer = ends.then(|| self.answer(&reply));
        // Who answered has its provider before its name.
        let model = reply.model.as_deref().and_then(|model| model.split_once('/')).map(|(_, name)| name);
        let model = model.unwrap_or_default().to_owned();
        chain.spoke(Spoken { model, finish: reply.finish, usage: reply.usage });
        let takes_part = !chain.is_empty();
        if takes_part {
            failpoint!("hook.before_run");
        }
        let done = async {
            if chain.has(HookName::OnTextEnd) {
                for part in &mut parts {
                    if let Part::Text { text } | Part::Reasoning { text, .. } = part {
                        chain.text_end(text).await?;
                    }
                }
            }
            if let Some(mut answer) = answer {
                let before = text_of(&parts);
                answer.text.clone_from(&before);
                chain.agent_response(&mut answer).await?;
                if answer.text != before {
                    retell(&mut parts, answer.text);
                }
            }
            for mut raw in calls {
                if let Some(by) = before_call(&mut chain, &mut raw).await? {
                    skipped.insert(raw.call.clone(), by);
                }
                routed.push(raw);
            }
            Ok::<(), Stopped>(())
        };
        let done = done.await;
        if takes_part {
            failpoint!("hook.after_run");
        }
        if let Err(stopped) = done {
            self.stopped(stopped).await?;
            return Ok(None);
        }
        if parts != reply.parts {
            if held {
                reply.parts = parts;
            } else {
                reply.notes.push(Note::ReplyAmended(ReplyAmended {
                    step: self.run.step(),
                    message: self.run.message(),
                    parts,
                    show_reasoning: self.run.created().is_some_and(|c| c.show_reasoning),
                    by: Guarded::Hidden,
                }));
            }
        }
        reply.notes.extend(self.notes(chain.leave()));
        self.course = None;
        Ok(Some((reply, routed, skipped)))
    }

    /// The end of a turn, but for its text.
    fn answer(&self, reply: &Reply) -> Answer {
        let sources = reply.parts.iter().filter_map(|part| match part {
            Part::Source { url, title, start_index, end_index, .. } => Some(Cited {
                url: url.clone(),
                title: title.clone(),
                start_index: *start_index,
                end_index: *end_index,
            }),
            _ => None,
        });
        let steps = self.run.turns().last().into_iter().flat_map(|turn| turn.steps.iter());
        let tool_calls = steps.clone().flat_map(|step| step.reply.calls.iter()).map(|call| Called {
            id: call.call.clone(),
            name: call.tool.to_string(),
            args: call.args.shown().cloned().unwrap_or_default(),
        });
        let tool_results = steps.flat_map(|step| {
            step.reply.calls.iter().filter_map(|call| {
                let outcome = &step.result_of(&call.call)?.outcome;
                let result = outcome.value().cloned().unwrap_or_default();
                Some(Ended {
                    id: call.call.clone(),
                    name: call.tool.to_string(),
                    outcome: outcome.kind(),
                    result,
                })
            })
        });
        let mut usage = self.run.usage();
        usage.add(&reply.usage);
        let cost = match (self.run.cost(), reply.cost) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0).saturating_add(now.unwrap_or(0))),
        };
        Answer {
            text: String::new(),
            sources: sources.collect(),
            provider_metadata: reply.metadata.clone().unwrap_or_default(),
            tool_calls: tool_calls.collect(),
            tool_results: tool_results.collect(),
            usage,
            cost,
        }
    }

    /// What a chain leaves for the log. A state that grew too large stays as it was.
    pub(super) fn notes(&self, left: Left) -> Vec<Note> {
        self.rt.trace(left.spans);
        let mut notes: Vec<Note> = left
            .emitted
            .into_iter()
            .map(|e| Note::PluginEmitted(PluginEmitted { plugin: e.plugin, name: e.name, value: e.value }))
            .collect();
        let state = Value::Object(left.state);
        let known = self.run.plugin_state(TOGETHER);
        let empty = state.as_object().is_some_and(|s| s.is_empty());
        if known != Some(&state) && !(known.is_none() && empty) {
            let bytes = state.to_string().len();
            if bytes > limits::PLUGIN_STATE_BYTES {
                let most = limits::PLUGIN_STATE_BYTES;
                tracing::warn!(run = %self.id, bytes, most, "what plugins remember is too large: it stays as it was");
            } else {
                let (plugin, state) = (Guarded::Shown(TOGETHER.to_owned()), Guarded::Shown(state));
                notes.push(Note::PluginStateSaved(PluginStateSaved { plugin, state }));
            }
        }
        notes
    }

    /// A plugin looks at the results of calls.
    pub(super) fn looks_at_results(&self) -> bool {
        let hooks = self.hooks.iter().flat_map(|hooks| hooks.all.iter());
        hooks.map(|hook| hook.nature()).any(|nature| nature.points.has(HookName::OnAfterToolCall))
    }

    /// What the plugins make of a result before it is logged.
    pub(super) async fn hooked_result(
        &mut self,
        call: &CallId,
        outcome: ToolOutcome,
        untrusted: bool,
    ) -> (ToolOutcome, bool, Vec<Note>) {
        if let Some(doomed) = &self.doomed {
            return (ToolOutcome::Failed(sentence(doomed)), untrusted, Vec::new());
        }
        let mut chain = self.chain();
        if !chain.has(HookName::OnAfterToolCall) {
            return (outcome, untrusted, Vec::new());
        }
        let Some(mut ran) = self.ran(call, &outcome, untrusted) else {
            return (outcome, untrusted, Vec::new());
        };
        let before = ran.clone();
        failpoint!("hook.before_run");
        let done = chain.after_tool_call(&mut ran).await;
        failpoint!("hook.after_run");
        let notes = self.notes(chain.leave());
        if let Err(stopped) = done {
            // The call has ended, so it must not be made again; what it gave is
            // shown to nobody, and the run ends where its next step would begin.
            let failed = ToolOutcome::Failed(sentence(&stopped));
            self.doomed = Some(stopped);
            return (failed, untrusted, notes);
        }
        let untrusted = ran.untrusted;
        let outcome = if ran == before { outcome } else { outcome_of(&outcome, ran) };
        (outcome, untrusted, notes)
    }

    /// Results that were logged as they came: the model reads what the plugins
    /// make of them. False if the log has something new.
    pub(super) async fn amend_results(&mut self) -> Result<bool, Stop> {
        let mut chain = self.chain();
        if !chain.has(HookName::OnAfterToolCall) {
            return Ok(true);
        }
        let step = self.run.turns().last().and_then(|turn| turn.steps.last().cloned());
        let seen = |step: u32| {
            let logged = self.run.plugin_state(SEEN).is_some_and(|seen| seen["step"] == step);
            logged || self.amended == Some(step)
        };
        let Some(step) = step.filter(|step| !seen(step.reply.step)) else { return Ok(true) };
        let mut notes = Vec::new();
        for call in &step.reply.calls {
            let Some(result) = step.result_of(&call.call).filter(|r| r.blob.is_none()) else { continue };
            if self.is_hooked_at_its_end(call.tool.as_str()) {
                continue;
            }
            let Some(mut ran) = self.ran(&call.call, &result.outcome, false) else { continue };
            let before = ran.clone();
            failpoint!("hook.before_run");
            let done = chain.after_tool_call(&mut ran).await;
            failpoint!("hook.after_run");
            if let Err(stopped) = done {
                self.stopped(stopped).await?;
                return Ok(false);
            }
            if ran == before {
                continue;
            }
            let untrusted = ran.untrusted;
            let outcome = outcome_of(&result.outcome, ran);
            let (value, error) = (outcome.value().cloned(), outcome.text().map(str::to_owned));
            notes.push(Note::ResultAmended(ResultAmended {
                call: call.call.clone(),
                tool: call.tool.clone(),
                visibility: call.visibility,
                outcome: outcome.kind(),
                value: value.map_or(Guarded::Hidden, Guarded::Shown),
                error: error.map_or(Guarded::Hidden, Guarded::Shown),
                untrusted,
                by: Guarded::Hidden,
            }));
        }
        self.amended = Some(step.reply.step);
        notes.extend(self.notes(chain.leave()));
        if notes.is_empty() {
            return Ok(true);
        }
        let (plugin, state) = (SEEN.to_owned(), json!({ "step": step.reply.step }));
        notes.push(Note::PluginStateSaved(PluginStateSaved {
            plugin: Guarded::Shown(plugin),
            state: Guarded::Shown(state),
        }));
        self.tell(Input::Noted(notes)).await?;
        Ok(false)
    }

    /// Tools that run in the worker's hands: their results pass the plugins on
    /// their way into the log.
    fn is_hooked_at_its_end(&self, tool: &str) -> bool {
        let spec = self.tools().and_then(|tools| tools.set.find(tool));
        spec.is_some_and(|spec| !spec.is_client() && !super::deed::is_deed(spec))
    }

    fn ran(&self, call: &CallId, outcome: &ToolOutcome, untrusted: bool) -> Option<Ran> {
        let turn = self.run.turns().last()?;
        let asked = turn.steps.iter().flat_map(|s| s.reply.calls.iter()).find(|c| c.call == *call)?;
        let (value, error) = (outcome.value().cloned(), outcome.text().map(str::to_owned));
        Some(Ran {
            id: call.clone(),
            name: asked.tool.to_string(),
            args: asked.args.shown().cloned().unwrap_or_default(),
            result: value.unwrap_or_default(),
            error,
            untrusted,
        })
    }
}

/// What everybody may know of it.
fn sentence(stopped: &Stopped) -> String {
    format!("Stopped by plugin {}", stopped.plugin)
}

/// Lets the plugins see a call; names the one that skips it.
async fn before_call(chain: &mut Chain, raw: &mut RawCall) -> Result<Option<String>, Stopped> {
    if !chain.has(HookName::OnBeforeToolCall) {
        return Ok(None);
    }
    // Arguments that are none go on as they are: the model hears why.
    let Ok(args) = parse_arguments(&raw.args_text) else { return Ok(None) };
    let mut call = Called { id: raw.call.clone(), name: raw.name.clone(), args };
    let before = call.clone();
    let skipped = chain.before_tool_call(&mut call).await?;
    if call != before {
        raw.args_text = call.args.to_string();
        raw.name = call.name;
    }
    Ok(skipped)
}

/// A result with what the plugins say. How it ended stays as it was, unless
/// they make an error of it, or none.
fn outcome_of(before: &ToolOutcome, ran: Ran) -> ToolOutcome {
    match (before.kind(), ran.error) {
        (OutcomeKind::Ok, None) => ToolOutcome::Ok(ran.result),
        (OutcomeKind::Ok, Some(error)) => ToolOutcome::Failed(error),
        (OutcomeKind::Failed, None) => ToolOutcome::Ok(ran.result),
        (kind, error) => ToolOutcome::from_parts(kind, None, error),
    }
}

/// The text of a reply is another one: it stands where the first text stood.
pub(super) fn retell(parts: &mut Vec<Part>, new: String) {
    let mut new = Some(new);
    parts.retain_mut(|part| match part {
        Part::Text { text } => match new.take() {
            Some(whole) => {
                *text = whole;
                true
            }
            None => false,
        },
        _ => true,
    });
    if let Some(text) = new.filter(|text| !text.is_empty()) {
        parts.push(Part::text(text));
    }
}
