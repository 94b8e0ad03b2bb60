//! Hooks: points of the loop where a plugin sees, changes or stops what passes
//! between the outside and the engine. What the log holds is the hooked value.
//!
//! [`Hook`] is what a plugin implements; a [`Chain`] is the hooks of one run in
//! their order, each fed with what the former made of it. A hook that fails
//! leaves the value as it was and the run goes on, unless it is critical.
//!
//! Who calls a chain, and where its events go, is the runtime's business.

mod chain;
mod crew;
mod points;
mod scene;
mod span;
mod values;

use futures::future::BoxFuture;

pub use chain::{Chain, Left, Stopped};
pub use crew::Crew;
pub use points::Points;
pub use scene::{Emitted, Scene, Spoken, Stage, State};
pub use span::{Span, SpanKind};
pub use values::{Answer, AskedTool, Called, Cited, Ended, Prompt, Ran, Said, SaidBy};

/// What a hook's step comes to.
pub type Step<'a, T = ()> = BoxFuture<'a, Result<T, HookError>>;

/// Why a hook did not do its work. The text is for logs and `on_error`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// What a hook is, before it does anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nature {
    /// Its failure stops the run.
    pub critical: bool,
    /// It may change the text of an answer.
    pub rewrites: bool,
    /// Where it takes part. Elsewhere it is not called.
    pub points: Points,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    On,
    /// It is not made, and no later hook hears of it.
    Nowhere,
}

/// A plugin's code. Every method may be left as it is: then nothing happens.
pub trait Hook: Send + Sync + std::fmt::Debug + 'static {
    /// Names the plugin in logs, events and errors.
    fn id(&self) -> &str;

    fn nature(&self) -> Nature {
        Nature::default()
    }

    /// Once, before the first use. The provider is that of the agent's model.
    /// If it fails, a critical plugin stops every run of the agent and any other
    /// one takes part in none.
    fn initialize<'a>(&'a self, _provider: &'a str) -> Step<'a> {
        done()
    }

    /// Before each call of the model.
    fn on_user_message<'a>(&'a self, _stage: &'a mut Stage<'_>, _prompt: &'a mut Prompt) -> Step<'a> {
        done()
    }

    /// New pieces of text, in order.
    fn on_text_chunk<'a>(&'a self, _stage: &'a mut Stage<'_>, _chunks: &'a mut Vec<String>) -> Step<'a> {
        done()
    }

    /// A text of the reply is whole.
    fn on_text_end<'a>(&'a self, _stage: &'a mut Stage<'_>, _text: &'a mut String) -> Step<'a> {
        done()
    }

    /// The model asks for a tool; nothing was decided yet.
    fn on_before_tool_call<'a>(&'a self, _stage: &'a mut Stage<'_>, _call: &'a mut Called) -> Step<'a, Goes> {
        Box::pin(std::future::ready(Ok(Goes::On)))
    }

    /// A tool has ended; the model has not read it yet.
    fn on_after_tool_call<'a>(&'a self, _stage: &'a mut Stage<'_>, _ran: &'a mut Ran) -> Step<'a> {
        done()
    }

    /// The last words of a turn: no tool is asked for any more.
    fn on_agent_response<'a>(&'a self, _stage: &'a mut Stage<'_>, _answer: &'a mut Answer) -> Step<'a> {
        done()
    }

    /// Something failed: the model, a tool's hook, another plugin.
    fn on_error<'a>(&'a self, _stage: &'a mut Stage<'_>, _error: &'a str) -> Step<'a> {
        done()
    }

    /// The agent goes, after it was initialized.
    fn destroy(&self) {}
}

fn done<'a>() -> Step<'a> {
    Box::pin(std::future::ready(Ok(())))
}
