//! A model call in flight.

use toolyard_engine::{Effect, EffectId, Reply, Tools};
use toolyard_models::{Chunk, ModelError, ModelStream, Request};
use toolyard_protocol::ErrorCode;
use toolyard_protocol::agent::ToolChoice;
use toolyard_protocol::tool::Toolset;
use toolyard_store::failpoint;

use super::draft::{Audience, Draft, RawCall};
use super::{Stop, Worker};

/// The model's stream and what it said so far.
pub(super) struct Speaking {
    pub(super) id: EffectId,
    pub(super) stream: ModelStream,
    draft: Option<Draft>,
}

/// What came of listening.
pub(super) enum Heard {
    More,
    Whole { reply: Reply, calls: Vec<RawCall> },
    Failed { error: ModelError, said: Option<Reply> },
}

impl Speaking {
    pub(super) fn take(&mut self, chunk: Option<Result<Chunk, ModelError>>) -> Heard {
        let Some(draft) = &mut self.draft else { return Heard::More };
        if draft.is_silent() {
            failpoint!("model.first_byte");
        }
        let error = match chunk {
            Some(Ok(chunk)) => {
                let Some(finish) = draft.take(chunk) else { return Heard::More };
                let Some(draft) = self.draft.take() else { return Heard::More };
                let (reply, calls) = draft.finish(finish);
                return Heard::Whole { reply, calls };
            }
            Some(Err(error)) => error,
            None => ModelError::Cut { detail: Default::default() },
        };
        Heard::Failed { error, said: self.draft.take().and_then(Draft::so_far) }
    }

    /// Stops listening; answers what was shown.
    pub(super) fn silence(self) -> Option<Reply> {
        self.draft.and_then(Draft::so_far)
    }
}

impl Worker {
    /// Calls the model for a step.
    pub(super) async fn speak(&mut self, effect: Effect) -> Result<(), Stop> {
        let Effect::CallModel { step, attempt, tools } = effect else { return Ok(()) };
        let agent = match self.agent.clone() {
            Ok(agent) => agent,
            Err(why) => {
                return self.fail(ErrorCode::AgentGone, "The agent cannot run here", why).await;
            }
        };
        let model = match self.rt.providers.get(&agent.config.model.provider) {
            Ok(model) => model,
            Err(error) => {
                // Which providers there are is the operator's business.
                let (code, detail) = (error.code(), error.to_string());
                return self.fail(code, "The agent's model provider is not configured", detail).await;
            }
        };
        let mut request = Request {
            model: self.run.model().unwrap_or(&agent.config.model.name).to_owned(),
            system: agent.config.agent.system.clone(),
            turns: self.history().await?,
            tools: agent.tools.offered.clone(),
            tool_choice: agent.config.loop_.tool_choice,
            temperature: agent.config.model.temperature,
            max_output_tokens: agent.config.model.max_output_tokens,
            reasoning: agent.config.model.reasoning.clone(),
            provider_options: agent.config.model.provider_options.clone(),
        };
        if tools == Tools::Off || request.tool_choice == ToolChoice::None {
            request.tools.clear();
        }
        if let Err(refused) = failpoint::pass("model.before_call") {
            let (text, detail) = ("The model provider cannot be reached", refused.to_string());
            return self.fail(ErrorCode::ModelFailed, text, detail).await;
        }
        let created = self.run.created();
        let audience = Audience {
            feed: self.rt.store.feed().clone(),
            run: self.id.clone(),
            space: created.and_then(|c| c.space.clone()),
            step,
            attempt,
            show_reasoning: created.is_some_and(|c| c.show_reasoning),
        };
        let offered = if request.tools.is_empty() { Toolset::default() } else { agent.tools.set.clone() };
        self.speaking = Some(Speaking {
            id: EffectId::Model { step, attempt },
            stream: model.stream(request),
            draft: Some(Draft::new(audience, offered)),
        });
        Ok(())
    }
}
