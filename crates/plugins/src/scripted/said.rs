//! What the code of a hook answers. It is a stranger's word: it is read into
//! types before it counts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::limits;

use crate::hooks::{Answer, HookError, Scene, State};

/// The driver's answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    /// Nothing was returned.
    kept: bool,
    value: Value,
    pub(super) each: Vec<Value>,
    /// What became of the value that was given.
    pub(super) back: Option<Value>,
    pub(super) emitted: Vec<Event>,
    pub(super) state: Option<State>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) value: Value,
}

/// A call that goes another way. Its id stays.
#[derive(Debug, Deserialize)]
pub(super) struct NewCall {
    pub(super) name: String,
    pub(super) args: Value,
}

/// What a hook makes of a result beside its value.
#[derive(Debug, Deserialize)]
pub(super) struct Verdict {
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) untrusted: bool,
}

impl Said {
    pub(super) fn read(value: Value) -> Result<Self, HookError> {
        let said: Self = read("the hook", value)?;
        let most = limits::PLUGIN_EVENT_NAME;
        match said.emitted.iter().find(|event| !is_event_name(&event.name)) {
            Some(_) => Err(HookError(format!(
                "the name of an event is a letter and then letters, digits, '.', '_' or '-', at most {most} signs"
            ))),
            None => Ok(said),
        }
    }

    /// What was returned, if anything.
    pub(super) fn changed(self) -> Option<Value> {
        (!self.kept).then_some(self.value)
    }
}

fn is_event_name(name: &str) -> bool {
    name.len() <= limits::PLUGIN_EVENT_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// A text, or nothing if the hook gave nothing.
pub(super) fn text(hook: &str, value: Value) -> Result<Option<String>, HookError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(HookError(format!("{hook} returned something that is no text"))),
    }
}

pub(super) fn read<T: DeserializeOwned>(hook: &str, value: Value) -> Result<T, HookError> {
    serde_json::from_value(value)
        .map_err(|error| HookError(format!("{hook} returned something else: {error}")))
}

pub(super) fn json(value: &impl Serialize) -> Result<Value, HookError> {
    serde_json::to_value(value).map_err(|error| HookError(error.to_string()))
}

/// The end of a turn, with the two names for its tokens that plugins know from
/// elsewhere.
pub(super) fn answer(answer: &Answer) -> Result<Value, HookError> {
    let mut whole = json(answer)?;
    whole["usage"]["promptTokens"] = answer.usage.input_tokens.into();
    whole["usage"]["completionTokens"] = answer.usage.output_tokens.into();
    Ok(whole)
}

/// The constant part of a hook's context.
pub(super) fn scene(scene: &Scene, options: &Value) -> Value {
    // The operator's traces are no plugin's matter, nor what only they tell.
    let Scene { run, client, thread, provider, message, step, agent: _, model: _, spoken: _, trace: _ } =
        scene;
    json!({
        "runId": run, "clientId": client, "threadId": thread, "provider": provider,
        "messageId": message, "step": step, "options": options,
    })
}
