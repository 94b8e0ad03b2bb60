//! Tracing: a turn, its model calls and its tool calls as spans, for whatever
//! collector the operator names (Langfuse, Jaeger, …). Without one they go
//! nowhere.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::manifest::HookName;
use toolyard_protocol::{CallId, TraceParent};

use crate::hooks::{Answer, Called, Goes, Hook, Nature, Points, Prompt, Ran, Span, Stage, State, Step};

pub const ID: &str = "tracing";
const KEY: &str = "tracing";
/// Signs of a text in an attribute.
const SHOWN: usize = 4_000;

/// The conventions still move: our names stand here alone.
mod names {
    pub(super) const OPERATION: &str = "gen_ai.operation.name";
    pub(super) const PROVIDER: &str = "gen_ai.provider.name";
    pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
    pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    pub(super) const COST: &str = "gen_ai.usage.cost";
    pub(super) const TOOL: &str = "gen_ai.tool.name";
    pub(super) const CALL: &str = "gen_ai.tool.call.id";
    pub(super) const INPUT: &str = "gen_ai.input.messages";
    pub(super) const OUTPUT: &str = "gen_ai.output.messages";
    pub(super) const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    pub(super) const RESULT: &str = "gen_ai.tool.call.result";
    pub(super) const RUN: &str = "toolyard.run.id";
    pub(super) const STEP: &str = "toolyard.step";
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// Also what was said, up to 4,000 characters each.
    pub content: bool,
}

#[derive(Debug, Default)]
pub struct Traces(Options);

/// The trace of a turn so far, in the run's state: a restart loses nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Course {
    trace: String,
    root: String,
    /// The caller's span.
    above: Option<String>,
    started: u64,
    asked: String,
    /// The model's span, while it speaks.
    speaking: Option<Open>,
    /// The span of each call that has no end yet.
    calls: HashMap<String, Open>,
}

/// A span that has begun.
#[derive(Debug, Serialize, Deserialize)]
struct Open {
    id: String,
    at: u64,
}

impl Open {
    fn now() -> Self {
        Self { id: id(16), at: now() }
    }
}

/// The span that is to be named to whoever works for it: the call's, or else
/// the model's that is about to be asked. None if nobody traces the run.
pub fn passed_on(state: &State, call: Option<&CallId>) -> Option<TraceParent> {
    let course = Course::read(state.get(KEY)?);
    let open = match call {
        Some(call) => course.calls.get(call.as_str()),
        None => course.speaking.as_ref(),
    };
    TraceParent::new(&course.trace, &open?.id)
}

impl Traces {
    pub fn new(options: Options) -> Self {
        Self(options)
    }

    fn shown(&self, text: &str) -> Option<Value> {
        self.0.content.then(|| json!(text.chars().take(SHOWN).collect::<String>()))
    }
}

impl Course {
    fn of(stage: &Stage<'_>) -> Self {
        stage.state.get(KEY).map(Self::read).unwrap_or_default()
    }

    fn read(known: &Value) -> Self {
        Self::deserialize(known).unwrap_or_default()
    }

    fn keep(&self, stage: &mut Stage<'_>) {
        stage.state.insert(KEY.to_owned(), json!(self));
    }

    fn span(&self, name: String, begun: Open, attributes: Vec<(&str, Option<Value>)>) -> Span {
        let given = attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Span {
            trace: self.trace.clone(),
            id: begun.id,
            parent: Some(self.root.clone()),
            name,
            start: begun.at,
            end: now(),
            attributes: given.collect(),
            error: None,
        }
    }

    /// The model has said all of its step.
    fn fall_silent(&mut self, stage: &mut Stage<'_>) {
        let Some(begun) = self.speaking.take() else { return };
        let (provider, step) = (stage.scene.provider.clone(), stage.scene.step);
        let attributes = vec![
            (names::OPERATION, Some(json!("chat"))),
            (names::PROVIDER, Some(json!(provider))),
            (names::STEP, Some(json!(step))),
        ];
        stage.record(self.span(format!("chat {provider}"), begun, attributes));
    }
}

fn id(signs: usize) -> String {
    let mut text = uuid::Uuid::new_v4().simple().to_string();
    text.truncate(signs);
    text
}

#[expect(clippy::disallowed_methods, reason = "times for people to read; nothing is decided by them")]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn done<'a>() -> Step<'a> {
    Box::pin(std::future::ready(Ok(())))
}

impl Hook for Traces {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        let points = Points::of(&[
            HookName::OnUserMessage,
            HookName::OnBeforeToolCall,
            HookName::OnAfterToolCall,
            HookName::OnAgentResponse,
            HookName::OnError,
        ]);
        Nature { points, ..Nature::default() }
    }

    fn on_user_message<'a>(&'a self, stage: &'a mut Stage<'_>, prompt: &'a mut Prompt) -> Step<'a> {
        let mut course = Course::of(stage);
        if course.trace.is_empty() {
            let asked = prompt.messages.last().map(|last| last.content.chars().take(SHOWN).collect());
            let asked = asked.filter(|_| self.0.content).unwrap_or_default();
            let above = stage.scene.trace.as_ref();
            course = Course {
                trace: above.map_or_else(|| id(32), |above| above.trace().to_owned()),
                root: id(16),
                above: above.map(|above| above.span().to_owned()),
                started: now(),
                asked,
                ..Course::default()
            };
        }
        course.speaking = Some(Open::now());
        course.keep(stage);
        done()
    }

    fn on_before_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, call: &'a mut Called) -> Step<'a, Goes> {
        let mut course = Course::of(stage);
        course.fall_silent(stage);
        course.calls.insert(call.id.to_string(), Open::now());
        course.keep(stage);
        Box::pin(std::future::ready(Ok(Goes::On)))
    }

    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        let mut course = Course::of(stage);
        if course.trace.is_empty() {
            return done();
        }
        let begun = course.calls.remove(ran.id.as_str()).unwrap_or_else(Open::now);
        let attributes = vec![
            (names::OPERATION, Some(json!("execute_tool"))),
            (names::TOOL, Some(json!(ran.name))),
            (names::CALL, Some(json!(ran.id))),
            (names::ARGUMENTS, self.shown(&ran.args.to_string())),
            (names::RESULT, self.shown(&ran.result.to_string())),
        ];
        let name = format!("execute_tool {}", ran.name);
        let span = course.span(name, begun, attributes);
        stage.record(Span { error: ran.error.clone(), ..span });
        course.keep(stage);
        done()
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        let mut course = Course::of(stage);
        if course.trace.is_empty() {
            return done();
        }
        course.fall_silent(stage);
        let attributes = vec![
            (names::OPERATION, Some(json!("invoke_agent"))),
            (names::PROVIDER, Some(json!(stage.scene.provider))),
            (names::CONVERSATION, stage.scene.thread.as_ref().map(|thread| json!(thread))),
            (names::RUN, Some(json!(stage.scene.run))),
            (names::INPUT_TOKENS, Some(json!(answer.usage.input_tokens))),
            (names::OUTPUT_TOKENS, Some(json!(answer.usage.output_tokens))),
            (names::COST, answer.cost.map(|millionths| json!(millionths as f64 / 1e6))),
            (names::INPUT, Some(json!(course.asked)).filter(|_| self.0.content)),
            (names::OUTPUT, self.shown(&answer.text)),
        ];
        let begun = Open { id: course.root.clone(), at: course.started };
        let span = course.span("invoke_agent".to_owned(), begun, attributes);
        stage.record(Span { parent: course.above, ..span });
        // The next turn of the run is a trace of its own.
        stage.state.remove(KEY);
        done()
    }

    fn on_error<'a>(&'a self, stage: &'a mut Stage<'_>, error: &'a str) -> Step<'a> {
        let course = Course::of(stage);
        if !course.trace.is_empty() {
            let span = course.span("error".to_owned(), Open::now(), Vec::new());
            stage.record(Span { error: Some(error.to_owned()), ..span });
        }
        done()
    }
}
