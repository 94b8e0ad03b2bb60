//! The hooks of a bundle: JavaScript in the sandbox.
//!
//! A [`Scripted`] is made for one step of one run, and its hooks share one
//! runtime there. Whatever must last longer belongs into the run's state.

mod said;

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolyard_protocol::limits;
use toolyard_protocol::manifest::HookName;

use crate::bundle::Bundle;
use crate::hooks::{
    Answer, Called, Goes, Hook, HookError, Nature, Points, Prompt, Ran, Scene, Stage, State, Step,
};
use crate::sandbox::{ConsoleLine, Host, Level, Limits, Sandbox, SandboxError, Script, Sitting};
use said::Said;

const DRIVER: &str = include_str!("driver.js");

/// What code may ask the gateway for, and the names by which it does.
pub trait Means: Send + Sync {
    /// See [`crate::sandbox::Job::prelude`].
    fn prelude(&self) -> &'static str;
    /// Answers the questions of one call.
    fn host(&self) -> Arc<dyn Host>;
    fn time_ms(&self) -> u64;
}

/// The hooks of a bundle during a step.
pub struct Scripted {
    bundle: Arc<Bundle>,
    nature: Nature,
    options: Value,
    means: Option<Arc<dyn Means>>,
    sandbox: Option<Sandbox>,
    seat: Mutex<Seat>,
}

/// The runtime, and what it has been told.
#[derive(Default)]
struct Seat {
    sitting: Option<Sitting>,
    /// What the code holds as the run's state, if that is known.
    state: Option<State>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scripted({}@{})", self.bundle.id(), self.bundle.version())
    }
}

/// How a hook is called.
enum Given {
    One(Value),
    /// As before, and what became of the value is wanted too.
    Back(Value),
    /// One after the other.
    Each(Vec<String>),
}

impl Scripted {
    /// Without a sandbox every hook fails.
    pub fn new(
        bundle: Arc<Bundle>,
        options: Value,
        sandbox: Option<Sandbox>,
        means: Option<Arc<dyn Means>>,
    ) -> Self {
        let document = bundle.document();
        let points: Vec<HookName> = document.hooks.keys().copied().collect();
        let nature =
            Nature { critical: document.critical, rewrites: document.rewrites, points: Points::of(&points) };
        Self { bundle, nature, options, means, sandbox, seat: Mutex::default() }
    }

    /// Whether a bundle has hooks at all.
    pub fn has_hooks(bundle: &Bundle) -> bool {
        !bundle.document().hooks.is_empty()
    }

    /// The step is over: `destroy` is called if the runtime is still there.
    pub async fn close(&self, scene: &Scene) {
        let kept = self.seat.lock().await.sitting.as_ref().is_some_and(Sitting::is_kept);
        if !kept || !self.has(HookName::Destroy) {
            return;
        }
        let (mut state, mut emitted, mut spans) = (State::new(), Vec::new(), Vec::new());
        let plugin = self.bundle.id().as_str();
        let mut stage = Stage::new(scene, &mut state, plugin, &mut emitted, &mut spans);
        if let Err(error) = self.call(&mut stage, HookName::Destroy, Given::One(Value::Null)).await {
            tracing::warn!(plugin, run = %scene.run, %error, "a plugin's destroy failed");
        }
        *self.seat.lock().await = Seat::default();
    }

    fn has(&self, hook: HookName) -> bool {
        self.bundle.document().hooks.contains_key(&hook)
    }

    /// Calls a hook's code.
    async fn call(&self, stage: &mut Stage<'_>, hook: HookName, given: Given) -> Result<Said, HookError> {
        let seat = &mut *self.seat.lock().await;
        if seat.sitting.is_none() {
            seat.sitting = Some(self.sit()?);
        }
        let Some(sitting) = &seat.sitting else { return Err(HookError("nobody sits".to_owned())) };
        let known = seat.state.take();
        let told = &*stage.state;
        let (scene, options) = (stage.scene, &self.options);
        let payload = |fresh: bool| {
            let mut payload = match &given {
                Given::One(value) => json!({ "value": value }),
                Given::Back(value) => json!({ "value": value, "back": true }),
                Given::Each(values) => json!({ "each": values }),
            };
            if fresh {
                payload["scene"] = said::scene(scene, options);
            }
            if fresh || known.as_ref() != Some(told) {
                payload["state"] = json!(told);
            }
            payload
        };
        let host = self.means.as_ref().map(|means| means.host());
        let answer = sitting.call(hook.as_str(), &payload, host.as_deref()).await.map_err(failed)?;
        self.print(scene, &answer.console);
        let mut said = Said::read(answer.value)?;
        if let Some(state) = said.state.take() {
            *stage.state = state;
        }
        for event in std::mem::take(&mut said.emitted) {
            stage.emit(&event.name, event.value);
        }
        seat.state = Some(stage.state.clone());
        Ok(said)
    }

    fn sit(&self) -> Result<Sitting, HookError> {
        let Some(sandbox) = &self.sandbox else {
            return Err(HookError("this gateway has no sandbox".to_owned()));
        };
        let mut script = Script::new(DRIVER);
        for (name, code) in &self.bundle.document().hooks {
            script = script.function(name.as_str(), parameters(*name), code);
        }
        if self.has(HookName::Initialize) {
            script = script.first(HookName::Initialize.as_str());
        }
        let mut time_ms = limits::SANDBOX_TIME_MS;
        if let Some(means) = &self.means {
            script = script.prelude(means.prelude()).asks();
            time_ms = means.time_ms();
        }
        sandbox.sitting(script.limits(Limits { time_ms, ..Limits::default() })).map_err(failed)
    }

    /// What the code logs. It is the plugin's word, not the gateway's.
    fn print(&self, scene: &Scene, lines: &[ConsoleLine]) {
        let (plugin, run) = (self.bundle.id(), &scene.run);
        for ConsoleLine { level, text } in lines {
            match level {
                Level::Debug => tracing::debug!(%plugin, %run, "{text}"),
                Level::Info => tracing::info!(%plugin, %run, "{text}"),
                Level::Warn => tracing::warn!(%plugin, %run, "{text}"),
                Level::Error => tracing::error!(%plugin, %run, "{text}"),
            }
        }
    }

    /// An answer is changed by those alone who say so in their document.
    fn rewritten(&self) -> Result<(), HookError> {
        if self.bundle.document().rewrites {
            return Ok(());
        }
        Err(HookError("it changes the answer, and its document does not say \"rewrites\": true".to_owned()))
    }
}

fn failed(error: SandboxError) -> HookError {
    HookError(error.to_string())
}

/// The names that a hook's code sees.
const fn parameters(hook: HookName) -> &'static [&'static str] {
    match hook {
        HookName::Initialize => &["init", "context"],
        HookName::OnUserMessage => &["input", "context"],
        HookName::OnTextChunk => &["chunk", "context"],
        HookName::OnTextEnd => &["text", "context"],
        HookName::OnBeforeToolCall => &["call", "context"],
        HookName::OnAfterToolCall => &["result", "context"],
        HookName::OnAgentResponse => &["response", "context"],
        HookName::OnError => &["error", "context"],
        HookName::Destroy => &["nothing", "context"],
    }
}

impl Hook for Scripted {
    fn id(&self) -> &str {
        self.bundle.id().as_str()
    }

    fn nature(&self) -> Nature {
        self.nature
    }

    fn on_user_message<'a>(&'a self, stage: &'a mut Stage<'_>, prompt: &'a mut Prompt) -> Step<'a> {
        Box::pin(async move {
            let given = Given::One(said::json(&*prompt)?);
            if let Some(new) = self.call(stage, HookName::OnUserMessage, given).await?.changed() {
                *prompt = said::read("onUserMessage", new)?;
            }
            Ok(())
        })
    }

    fn on_text_chunk<'a>(&'a self, stage: &'a mut Stage<'_>, chunks: &'a mut Vec<String>) -> Step<'a> {
        Box::pin(async move {
            let said = self.call(stage, HookName::OnTextChunk, Given::Each(chunks.clone())).await?;
            let mut changed = false;
            for (chunk, new) in chunks.iter_mut().zip(said.each) {
                if let Some(new) = said::text("onTextChunk", new)? {
                    changed |= *chunk != new;
                    *chunk = new;
                }
            }
            if changed { self.rewritten() } else { Ok(()) }
        })
    }

    fn on_text_end<'a>(&'a self, stage: &'a mut Stage<'_>, text: &'a mut String) -> Step<'a> {
        Box::pin(async move {
            let given = Given::One(Value::String(text.clone()));
            let said = self.call(stage, HookName::OnTextEnd, given).await?;
            match said.changed().map(|new| said::text("onTextEnd", new)).transpose()?.flatten() {
                Some(new) if new != *text => {
                    *text = new;
                    self.rewritten()
                }
                _ => Ok(()),
            }
        })
    }

    fn on_before_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, call: &'a mut Called) -> Step<'a, Goes> {
        Box::pin(async move {
            let given = Given::One(said::json(&*call)?);
            match self.call(stage, HookName::OnBeforeToolCall, given).await?.changed() {
                None => Ok(Goes::On),
                Some(Value::Null) => Ok(Goes::Nowhere),
                Some(new) => {
                    let said::NewCall { name, args } = said::read("onBeforeToolCall", new)?;
                    (call.name, call.args) = (name, args);
                    Ok(Goes::On)
                }
            }
        })
    }

    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        Box::pin(async move {
            let given = Given::Back(said::json(&*ran)?);
            let mut said = self.call(stage, HookName::OnAfterToolCall, given).await?;
            if let Some(back) = said.back.take() {
                let said::Verdict { error, untrusted } = said::read("onAfterToolCall", back)?;
                (ran.error, ran.untrusted) = (error, untrusted);
            }
            if let Some(new) = said.changed() {
                ran.result = new;
            }
            Ok(())
        })
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        Box::pin(async move {
            let given = Given::One(said::answer(answer)?);
            let said = self.call(stage, HookName::OnAgentResponse, given).await?;
            let new = match said.changed() {
                Some(Value::Object(mut whole)) => whole.remove("text").unwrap_or_default(),
                Some(other) => other,
                None => return Ok(()),
            };
            match said::text("onAgentResponse", new)? {
                Some(new) if new != answer.text => {
                    answer.text = new;
                    self.rewritten()
                }
                _ => Ok(()),
            }
        })
    }

    fn on_error<'a>(&'a self, stage: &'a mut Stage<'_>, error: &'a str) -> Step<'a> {
        Box::pin(async move {
            let given = Given::One(Value::String(error.to_owned()));
            self.call(stage, HookName::OnError, given).await.map(|_| ())
        })
    }
}
