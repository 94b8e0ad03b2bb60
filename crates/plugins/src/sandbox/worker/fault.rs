//! What an exception of the engine means for whoever called.

use rquickjs::convert::Coerced;
use rquickjs::{Ctx, Error, Value};

use super::state::State;
use crate::sandbox::error::SandboxError;

/// Characters of an exception's message that are kept.
const MESSAGE_CHARS: usize = 2_000;
/// The name of what is no error and was thrown.
const THROWN: &str = "Thrown";

/// Turns an error into the call's. A broken limit wins over whatever followed from it.
pub(super) fn explain(ctx: &Ctx<'_>, state: &State, error: Error) -> SandboxError {
    let limits = state.limits();
    let memory = SandboxError::Memory { limit_bytes: limits.memory_bytes };
    let thrown = matches!(error, Error::Exception).then(|| ctx.catch());
    if let Some(broken) = state.broken() {
        return broken;
    }
    let Some(thrown) = thrown else {
        let is_memory = matches!(error, Error::Allocation);
        return if is_memory { memory } else { threw("Error", error.to_string()) };
    };
    let (name, message) = describe(ctx, &thrown);
    // Reading the exception runs its code, which can break a limit too.
    if let Some(broken) = state.broken() {
        return broken;
    }
    match (name.as_str(), message.as_str()) {
        // The longest text of the engine is longer than any limit.
        ("InternalError", "out of memory" | "string too long") => memory,
        ("RangeError", "Maximum call stack size exceeded") => {
            SandboxError::Stack { limit_bytes: limits.stack_bytes }
        }
        _ => threw(&name, message),
    }
}

/// The engine throws `null` when there is no memory left to say that there is
/// none. Code can do so too, but then it has not filled its memory.
pub(super) fn is_speechless(error: &SandboxError, peak: u64, limit_bytes: usize) -> bool {
    let is_null =
        matches!(error, SandboxError::Threw { name, message } if name == THROWN && message == "null");
    is_null && peak > limit_bytes as u64 / 4 * 3
}

fn threw(name: &str, message: String) -> SandboxError {
    SandboxError::Threw { name: cut(name), message: cut(&message) }
}

fn cut(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS).collect()
}

/// Name and message of an error, or the text of whatever else was thrown.
fn describe<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>) -> (String, String) {
    let text = |value: Value<'js>| {
        value.get::<Coerced<String>>().map(|text| text.0).unwrap_or_else(|_| {
            ctx.catch();
            "(no text)".to_owned()
        })
    };
    match thrown.as_object() {
        Some(object) if object.is_error() => {
            let field = |name: &str| object.get::<_, Value>(name).ok().map(text).unwrap_or_default();
            (field("name"), field("message"))
        }
        _ => (THROWN.to_owned(), text(thrown.clone())),
    }
}
