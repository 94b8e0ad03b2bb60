//! The hooks of one run, one after the other.

use std::sync::Arc;

use toolyard_protocol::manifest::HookName;

use super::{
    Answer, Called, Emitted, Goes, Hook, HookError, Nature, Prompt, Ran, Scene, Span, Spoken, Stage, State,
};

/// The hooks of an agent in the order of its configuration, at work on one
/// step of a run.
#[derive(Debug)]
pub struct Chain {
    hooks: Arc<[Arc<dyn Hook>]>,
    scene: Scene,
    state: State,
    emitted: Vec<Emitted>,
    spans: Vec<Span>,
}

/// A critical hook failed: the run must not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin} failed: {error}")]
pub struct Stopped {
    pub plugin: String,
    pub error: HookError,
}

/// What a chain leaves behind for the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Left {
    pub emitted: Vec<Emitted>,
    pub state: State,
    /// For the operator's collector, not for the log.
    pub spans: Vec<Span>,
}

/// Runs one method of every hook that takes part here, each fed with what the
/// former made of the value. A failed hook's changes are undone.
macro_rules! each {
    ($self:ident, $point:ident, $value:ident, |$hook:ident, $stage:ident, $new:ident| $call:expr) => {{
        let hooks = $self.hooks.clone();
        for $hook in hooks.iter().filter(|hook| hook.nature().points.has(HookName::$point)) {
            let (plugin, kept) = ($hook.id(), $self.emitted.len());
            let (before, state) = ($value.clone(), $self.state.clone());
            let $new = &mut *$value;
            let (scene, spans) = (&$self.scene, &mut $self.spans);
            let mut stage = Stage::new(scene, &mut $self.state, plugin, &mut $self.emitted, spans);
            let $stage = &mut stage;
            let done: Result<(), HookError> = $call;
            if let Err(error) = done {
                *$value = before;
                $self.state = state;
                $self.emitted.truncate(kept);
                $self.failed($hook.as_ref(), error).await?;
            }
        }
        Ok(())
    }};
}

impl Chain {
    pub fn new(hooks: Arc<[Arc<dyn Hook>]>, scene: Scene, state: State) -> Self {
        Self { hooks, scene, state, emitted: Vec::new(), spans: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// What the hooks remember so far.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The model's reply is whole.
    pub fn spoke(&mut self, spoken: Spoken) {
        self.scene.spoken = Some(spoken);
    }

    /// Some hook takes part at this point.
    pub fn has(&self, point: HookName) -> bool {
        self.natures().any(|n| n.points.has(point))
    }

    /// What a critical hook may rewrite is shown to nobody before it did.
    pub fn must_hold(&self) -> bool {
        self.natures().any(|n| n.critical && n.rewrites)
    }

    /// Some hook may change the text of an answer.
    pub fn rewrites(&self) -> bool {
        self.natures().any(|n| n.rewrites)
    }

    fn natures(&self) -> impl Iterator<Item = Nature> {
        self.hooks.iter().map(|hook| hook.nature())
    }

    /// What is to be logged. Nothing is left twice.
    pub fn leave(self) -> Left {
        Left { emitted: self.emitted, state: self.state, spans: self.spans }
    }

    pub async fn user_message(&mut self, prompt: &mut Prompt) -> Result<(), Stopped> {
        each!(self, OnUserMessage, prompt, |hook, stage, it| hook.on_user_message(stage, it).await)
    }

    pub async fn text_chunks(&mut self, chunks: &mut Vec<String>) -> Result<(), Stopped> {
        each!(self, OnTextChunk, chunks, |hook, stage, it| hook.on_text_chunk(stage, it).await)
    }

    pub async fn text_end(&mut self, text: &mut String) -> Result<(), Stopped> {
        each!(self, OnTextEnd, text, |hook, stage, it| hook.on_text_end(stage, it).await)
    }

    pub async fn after_tool_call(&mut self, ran: &mut Ran) -> Result<(), Stopped> {
        let untrusted = ran.untrusted;
        let done: Result<(), Stopped> =
            each!(self, OnAfterToolCall, ran, |hook, stage, it| hook.on_after_tool_call(stage, it).await);
        ran.untrusted |= untrusted;
        done
    }

    pub async fn agent_response(&mut self, answer: &mut Answer) -> Result<(), Stopped> {
        each!(self, OnAgentResponse, answer, |hook, stage, it| hook.on_agent_response(stage, it).await)
    }

    /// Names the plugin that lets the call go nowhere.
    pub async fn before_tool_call(&mut self, call: &mut Called) -> Result<Option<String>, Stopped> {
        let mut skipped = None;
        let done: Result<(), Stopped> =
            each!(self, OnBeforeToolCall, call, |hook, stage, it| match skipped.is_some() {
                true => Ok(()),
                false => match hook.on_before_tool_call(stage, it).await {
                    Ok(Goes::On) => Ok(()),
                    Ok(Goes::Nowhere) => {
                        skipped = Some(hook.id().to_owned());
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
            });
        done.map(|()| skipped)
    }

    /// Tells every hook of a failure. What their handlers do wrong is only logged.
    pub async fn error(&mut self, error: &str) {
        let hooks = self.hooks.clone();
        for hook in hooks.iter().filter(|hook| hook.nature().points.has(HookName::OnError)) {
            let (scene, spans) = (&self.scene, &mut self.spans);
            let mut stage = Stage::new(scene, &mut self.state, hook.id(), &mut self.emitted, spans);
            if let Err(error) = hook.on_error(&mut stage, error).await {
                tracing::error!(pluginId = hook.id(), run = %self.scene.run, %error, "Plugin error handler failed");
            }
        }
    }

    async fn failed(&mut self, hook: &dyn Hook, error: HookError) -> Result<(), Stopped> {
        let plugin = hook.id().to_owned();
        let critical = hook.nature().critical;
        tracing::warn!(plugin, run = %self.scene.run, %error, critical, "a plugin failed");
        let stopped = Stopped { plugin, error };
        self.error(&stopped.to_string()).await;
        if critical { Err(stopped) } else { Ok(()) }
    }
}
