//! Tracing: a turn, its model calls and its tool calls as spans, for whatever
//! collector the operator names (Langfuse, Jaeger, …). Without one they go
//! nowhere. Names and kinds are those of OpenTelemetry's conventions for
//! generative AI.

mod names;

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::event::RunFinished;
use toolyard_protocol::manifest::HookName;
use toolyard_protocol::run::{RunEnd, Usage};
use toolyard_protocol::{CallId, TraceParent};

use crate::hooks::{
    Answer, Called, Goes, Hook, Nature, Points, Prompt, Ran, Scene, Span, SpanKind, Stage, State, Step,
};

pub const ID: &str = "tracing";
const KEY: &str = "tracing";
/// Signs of a text in an attribute.
const SHOWN: usize = 4_000;

/// What a span says beside its name. A missing value is left out.
type Attributes = Vec<(&'static str, Option<Value>)>;

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
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Open {
    id: String,
    at: u64,
    /// The tool of a call.
    #[serde(skip_serializing_if = "String::is_empty")]
    tool: String,
}

impl Open {
    fn now() -> Self {
        Self { id: id(16), at: now(), tool: String::new() }
    }
}

/// What went wrong: a word of few, and a sentence.
struct Wrong<'a> {
    code: &'a str,
    text: &'a str,
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

/// The trace of the turn so far. None if nobody traces the run, or its last
/// turn has ended with an answer.
pub fn course(state: &State) -> Option<&Value> {
    state.get(KEY)
}

/// The spans of a turn that ended without an answer: those that were open, and
/// the turn itself. What nobody ends would hang below a span that is not there.
pub fn cut_short(course: &Value, scene: &Scene, end: &RunFinished) -> Vec<Span> {
    let mut course = Course::read(course);
    if course.trace.is_empty() {
        return Vec::new();
    }
    let wrong = match end.status {
        RunEnd::Failed => Some(Wrong {
            code: end.error.map_or("_OTHER", |code| code.as_str()),
            text: end.message.as_deref().unwrap_or("The run failed"),
        }),
        RunEnd::Completed | RunEnd::Canceled => None,
    };
    let status = || (names::STATUS, Some(json!(end.status.status().as_str())));
    let mut spans = Vec::new();
    if let Some(begun) = course.speaking.take() {
        spans.push(course.chat(scene, begun, vec![status()], wrong.as_ref()));
    }
    for (call, begun) in std::mem::take(&mut course.calls) {
        spans.push(course.call(&call, begun, vec![status()], wrong.as_ref()));
    }
    let mut more = course.used(&end.usage, end.cost);
    more.push(status());
    if !course.asked.is_empty() {
        more.push((names::INPUT, Some(names::message("user", &course.asked, None))));
    }
    spans.push(course.turn(scene, more, wrong.as_ref()));
    spans
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

    fn span(&self, name: String, begun: Open, attributes: Attributes, wrong: Option<&Wrong<'_>>) -> Span {
        let failed = wrong.map(|wrong| (names::ERROR, Some(json!(wrong.code))));
        let given = attributes.into_iter().chain(failed);
        Span {
            trace: self.trace.clone(),
            id: begun.id,
            parent: Some(self.root.clone()),
            name,
            start: begun.at,
            end: now(),
            attributes: given.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
            error: wrong.map(|wrong| wrong.text.to_owned()),
            kind: SpanKind::Internal,
        }
    }

    /// A call of the model.
    fn chat(&self, scene: &Scene, begun: Open, more: Attributes, wrong: Option<&Wrong<'_>>) -> Span {
        let spoken = scene.spoken.as_ref();
        let mut attributes = vec![
            (names::OPERATION, Some(json!("chat"))),
            (names::PROVIDER, Some(json!(names::provider(&scene.provider)))),
            (names::MODEL, Some(json!(scene.model))),
            (names::CONVERSATION, scene.thread.as_ref().map(|thread| json!(thread))),
            (names::ANSWERED, spoken.map(|spoken| json!(spoken.model))),
            (names::FINISH, spoken.map(|spoken| json!([names::finish(spoken.finish)]))),
            (names::STEP, Some(json!(scene.step))),
        ];
        attributes.extend(spoken.map(|spoken| self.used(&spoken.usage, None)).unwrap_or_default());
        attributes.extend(more);
        let span = self.span(format!("chat {}", scene.model), begun, attributes, wrong);
        Span { kind: SpanKind::Client, ..span }
    }

    /// A call of a tool.
    fn call(&self, call: &str, begun: Open, more: Attributes, wrong: Option<&Wrong<'_>>) -> Span {
        let tool = begun.tool.clone();
        let mut attributes = vec![
            (names::OPERATION, Some(json!("execute_tool"))),
            (names::TOOL, Some(json!(tool))),
            (names::TOOL_TYPE, Some(json!("function"))),
            (names::CALL, Some(json!(call))),
        ];
        attributes.extend(more);
        self.span(format!("execute_tool {tool}"), begun, attributes, wrong)
    }

    /// The turn itself.
    fn turn(&self, scene: &Scene, more: Attributes, wrong: Option<&Wrong<'_>>) -> Span {
        let mut attributes = vec![
            (names::OPERATION, Some(json!("invoke_agent"))),
            (names::PROVIDER, Some(json!(names::provider(&scene.provider)))),
            (names::AGENT, Some(json!(scene.agent))),
            (names::MODEL, Some(json!(scene.model))),
            (names::CONVERSATION, scene.thread.as_ref().map(|thread| json!(thread))),
            (names::RUN, Some(json!(scene.run))),
        ];
        attributes.extend(more);
        let begun = Open { id: self.root.clone(), at: self.started, tool: String::new() };
        let span = self.span(format!("invoke_agent {}", scene.agent), begun, attributes, wrong);
        Span { parent: self.above.clone(), ..span }
    }

    fn used(&self, usage: &Usage, cost: Option<u64>) -> Attributes {
        vec![
            (names::INPUT_TOKENS, Some(json!(usage.input_tokens))),
            (names::OUTPUT_TOKENS, Some(json!(usage.output_tokens))),
            (names::COST, cost.map(|millionths| json!(millionths as f64 / 1e6))),
        ]
    }

    /// The model has said all of its step.
    fn fall_silent(&mut self, stage: &mut Stage<'_>) {
        if let Some(begun) = self.speaking.take() {
            stage.record(self.chat(stage.scene, begun, Vec::new(), None));
        }
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
        // A step whose calls nobody could read ends here.
        course.fall_silent(stage);
        course.speaking = Some(Open::now());
        course.keep(stage);
        done()
    }

    fn on_before_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, call: &'a mut Called) -> Step<'a, Goes> {
        let mut course = Course::of(stage);
        course.fall_silent(stage);
        course.calls.insert(call.id.to_string(), Open { tool: call.name.clone(), ..Open::now() });
        course.keep(stage);
        Box::pin(std::future::ready(Ok(Goes::On)))
    }

    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        let mut course = Course::of(stage);
        if course.trace.is_empty() {
            return done();
        }
        let mut begun = course.calls.remove(ran.id.as_str()).unwrap_or_else(Open::now);
        begun.tool.clone_from(&ran.name);
        let more = vec![
            (names::ARGUMENTS, self.shown(&ran.args.to_string())),
            (names::RESULT, self.shown(&ran.result.to_string())),
        ];
        let wrong = ran.error.as_deref().map(|text| Wrong { code: "tool_error", text });
        stage.record(course.call(ran.id.as_str(), begun, more, wrong.as_ref()));
        course.keep(stage);
        done()
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        let mut course = Course::of(stage);
        if course.trace.is_empty() {
            return done();
        }
        course.fall_silent(stage);
        // Results that are too large for hooks have ended too.
        for (call, begun) in std::mem::take(&mut course.calls) {
            stage.record(course.call(&call, begun, Vec::new(), None));
        }
        let mut more = course.used(&answer.usage, answer.cost);
        if self.0.content {
            let finish = stage.scene.spoken.as_ref().map(|spoken| names::finish(spoken.finish));
            let text: String = answer.text.chars().take(SHOWN).collect();
            more.push((names::INPUT, Some(names::message("user", &course.asked, None))));
            more.push((names::OUTPUT, Some(names::message("assistant", &text, finish))));
        }
        stage.record(course.turn(stage.scene, more, None));
        // The next turn of the run is a trace of its own.
        stage.state.remove(KEY);
        done()
    }
}
