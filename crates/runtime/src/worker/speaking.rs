//! A model call in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use futures::future::{BoxFuture, poll_fn};
use futures::{FutureExt, StreamExt};
use toolyard_engine::{Effect, EffectId, Input, Reply, Tools};
use toolyard_models::{
    Candidate, Chunk, ModelError, ModelRecord, ModelStream, OfferedTool, OutputSchema, Request, Wanted,
};
use toolyard_plugins::hooks::{Chain, Stopped};
use toolyard_plugins::shipped::course;
use toolyard_protocol::ErrorCode;
use toolyard_protocol::agent::{OutputSection, Period, Rewriting, ToolChoice};
use toolyard_protocol::manifest::HookName;
use toolyard_store::failpoint;
use toolyard_store::usage::{self, Span};

use super::context::Fitted;
use super::draft::{Audience, Draft, RawCall};
use super::prompted;
use super::search;
use super::{Stop, Worker};
use crate::agents::LoadedAgent;

/// Chunks that are heard together at most.
const TOGETHER: usize = 64;

/// The model's stream and what it said so far.
pub(super) struct Speaking {
    pub(super) id: EffectId,
    stream: ModelStream,
    /// Heard and not taken yet.
    heard: Vec<Result<Chunk, ModelError>>,
    draft: Option<Draft>,
    /// Who speaks.
    record: Arc<ModelRecord>,
    /// Who would speak instead, and what they would be asked.
    others: VecDeque<Candidate>,
    request: Option<Request>,
    /// The plugins that listen. Away while they work on `hooking`.
    chain: Option<Chain>,
    hooking: Option<Hooking>,
    /// Nobody sees the reply before the plugins saw it whole.
    held: bool,
}

/// Plugins at work on new words. It goes on where it stood when the worker
/// comes back from something else.
type Hooking = BoxFuture<'static, (Chain, Vec<Result<Chunk, ModelError>>, Result<(), Stopped>)>;

/// Lets the plugins see, and change, each new text.
async fn listened(
    mut chain: Chain,
    mut heard: Vec<Result<Chunk, ModelError>>,
) -> (Chain, Vec<Result<Chunk, ModelError>>, Result<(), Stopped>) {
    let mut texts: Vec<String> = (heard.iter())
        .filter_map(|chunk| match chunk {
            Ok(Chunk::TextDelta { text }) => Some(text.clone()),
            _ => None,
        })
        .collect();
    let count = texts.len();
    if count == 0 {
        return (chain, heard, Ok(()));
    }
    failpoint!("hook.before_run");
    let done = chain.text_chunks(&mut texts).await;
    failpoint!("hook.after_run");
    // A plugin may keep words back and give them later, with others.
    let rest = texts.split_off(count.min(texts.len())).concat();
    let mut new = texts.into_iter();
    let mut left = count;
    for chunk in &mut heard {
        if let Ok(Chunk::TextDelta { text }) = chunk {
            *text = new.next().unwrap_or_default();
            left -= 1;
            if left == 0 {
                text.push_str(&rest);
            }
        }
    }
    heard.retain(|chunk| !matches!(chunk, Ok(Chunk::TextDelta { text }) if text.is_empty()));
    (chain, heard, done)
}

/// What came of listening.
pub(super) enum Heard {
    More,
    Whole {
        reply: Reply,
        calls: Vec<RawCall>,
        chain: Box<Chain>,
        held: bool,
    },
    /// A critical plugin wants it to end.
    Stopped(Stopped),
    Failed {
        error: ModelError,
        said: Option<Reply>,
    },
}

/// Nothing follows it.
fn ends(chunk: &Result<Chunk, ModelError>) -> bool {
    matches!(chunk, Err(_) | Ok(Chunk::Finish { .. }))
}

/// Lets the tasks that are ready run first.
async fn give_way() {
    let mut gave = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Speaking {
    fn begin(
        id: EffectId,
        candidate: Candidate,
        others: VecDeque<Candidate>,
        request: Request,
        draft: Draft,
        chain: Chain,
        held: bool,
    ) -> Self {
        let again = (!others.is_empty()).then(|| request.clone());
        let Candidate { record, model } = candidate;
        let stream = model.stream(record.fit(request));
        Self {
            id,
            stream,
            heard: Vec::new(),
            draft: Some(draft),
            record,
            others,
            request: again,
            chain: Some(chain),
            hooking: None,
            held,
        }
    }

    /// Asks the next model, if nothing was heard of this one and it is busy or
    /// out of order.
    fn falls_back(&mut self, error: &ModelError) -> bool {
        if !error.falls_back() || !self.draft.as_ref().is_some_and(Draft::is_empty) {
            return false;
        }
        let (Some(next), Some(request)) = (self.others.pop_front(), self.request.clone()) else {
            return false;
        };
        tracing::warn!(model = %self.record.id, next = %next.record.id, %error, "another model takes over");
        self.stream = next.model.stream(next.record.fit(request));
        self.record = next.record;
        true
    }

    /// Adds who said it and what it cost.
    fn signed(&self, mut reply: Reply) -> Reply {
        reply.cost = self.record.price.map(|price| price.of(&reply.usage));
        reply.model = Some(format!("{}/{}", self.record.provider, self.record.model));
        reply
    }

    /// Waits for the next words. What came together is heard together: one read
    /// of the vendor's stream is one piece of news. Dropped halfway, it loses nothing.
    pub(super) async fn hear(&mut self) -> Heard {
        if self.hooking.is_none() {
            self.listen().await;
            if let Some(chain) = self.chain.take_if(|chain| chain.has(HookName::OnTextChunk)) {
                self.hooking = Some(Box::pin(listened(chain, std::mem::take(&mut self.heard))));
            }
        }
        if let Some(hooking) = &mut self.hooking {
            let (chain, heard, done) = hooking.await;
            self.hooking = None;
            (self.chain, self.heard) = (Some(chain), heard);
            if let Err(stopped) = done {
                return Heard::Stopped(stopped);
            }
        }
        self.take()
    }

    async fn listen(&mut self) {
        let cut = || Err(ModelError::Cut { detail: Default::default() });
        if self.heard.is_empty() {
            let first = self.stream.next().await;
            self.heard.push(first.unwrap_or_else(cut));
        }
        // The first words of a reply are told at once; the head of a call is nobody's first word.
        let silent = self.draft.as_ref().is_none_or(Draft::is_silent);
        let lingers =
            !silent || self.heard.iter().any(|chunk| matches!(chunk, Ok(Chunk::ToolInputStart { .. })));
        let mut gave_way = !lingers;
        while self.heard.len() < TOGETHER && self.heard.last().is_some_and(|last| !ends(last)) {
            match self.stream.next().now_or_never() {
                Some(next) => {
                    self.heard.push(next.unwrap_or_else(cut));
                    gave_way = !lingers;
                }
                None if gave_way => break,
                // A connection that has read many pieces hands over one at a time.
                None => {
                    give_way().await;
                    gave_way = true;
                }
            }
        }
    }

    fn take(&mut self) -> Heard {
        let chunks = std::mem::take(&mut self.heard);
        let Some(draft) = &mut self.draft else { return Heard::More };
        if draft.is_silent() {
            failpoint!("model.first_byte");
        }
        let mut end = None;
        for chunk in chunks {
            match chunk {
                Ok(chunk) => end = draft.take(chunk).map(Ok),
                Err(error) => end = Some(Err(error)),
            }
            if end.is_some() {
                break;
            }
        }
        if !self.held {
            draft.tell();
        }
        let Some(end) = end else { return Heard::More };
        if let Err(error) = &end
            && self.falls_back(error)
        {
            return Heard::More;
        }
        let (Some(draft), Some(chain)) = (self.draft.take(), self.chain.take()) else { return Heard::More };
        match end {
            Ok(finish) => {
                let (reply, calls) = draft.finish(finish);
                let (reply, chain) = (self.signed(reply), Box::new(chain));
                Heard::Whole { reply, calls, chain, held: self.held }
            }
            Err(error) => Heard::Failed { error, said: self.shown(draft) },
        }
    }

    /// Stops listening; answers what was shown.
    pub(super) fn silence(mut self) -> Option<Reply> {
        self.draft.take().and_then(|draft| self.shown(draft))
    }

    /// What was shown of a reply that does not end. What was held back was not.
    fn shown(&self, draft: Draft) -> Option<Reply> {
        let mut said = draft.so_far()?;
        if self.held {
            said.parts.clear();
        }
        Some(self.signed(said))
    }
}

impl Worker {
    /// Calls the model for a step.
    pub(super) async fn speak(&mut self, effect: Effect) -> Result<(), Stop> {
        let Effect::CallModel { step, attempt, tools } = effect else { return Ok(()) };
        if let Some(stopped) = self.doomed.take() {
            return self.stopped(stopped).await;
        }
        let agent = match self.agent.clone() {
            Ok(agent) => agent,
            Err(why) => {
                return self.fail(ErrorCode::AgentGone, "The agent cannot run here", why).await;
            }
        };
        let mut candidates = match self.candidates(&agent) {
            Ok(candidates) => VecDeque::from(candidates),
            Err(error) => {
                // Which providers there are is the operator's business.
                let (code, detail) = (error.code(), error.to_string());
                return self.fail(code, "The agent's model is not configured here", detail).await;
            }
        };
        if agent.needs_price() {
            candidates.retain(|candidate| candidate.record.price.is_some());
            if candidates.is_empty() {
                let text = "The model has no price, so its cost cannot be held to the budget";
                return self.fail(ErrorCode::BudgetExceeded, text, String::new()).await;
            }
        }
        if !self.renew_tools(&agent).await? {
            return Ok(());
        }
        self.bring_tools().await?;
        let Some(offer) = self.tools().cloned() else {
            let why = "The run's tools are not there".to_owned();
            return self.fail(ErrorCode::AgentGone, "The agent cannot run here", why).await;
        };
        if let Some(text) = self.over_budget(&agent).await? {
            return self.fail(ErrorCode::BudgetExceeded, &text, String::new()).await;
        }
        if !self.amend_results().await? {
            return Ok(());
        }
        let Some(candidate) = candidates.pop_front() else { return Ok(()) };
        let shown = search::offered(&offer, &agent.tools.set, &self.run, agent.search_above());
        let mut request = frame(&agent, shown, tools);
        // A request may ask for another form of the answer than the agent's own.
        let asked = self.run.created().and_then(|created| created.output.shown());
        if let Some(output) = asked {
            request.output = Some(output_schema(output));
        }
        let id = EffectId::Model { step, attempt };
        request.turns = match self
            .fitting_history(&id, &candidate, &candidates, &request, &agent.config.context)
            .await?
        {
            Fitted::Turns(turns) => turns,
            // The run may be over, or must stop: what is due is asked again.
            Fitted::Again => return Ok(()),
        };
        if let Err(refused) = failpoint::pass("model.before_call") {
            let (text, detail) = ("The model provider cannot be reached", refused.to_string());
            return self.fail(ErrorCode::ModelFailed, text, detail).await;
        }
        let created = self.run.created();
        let audience = Audience {
            feed: self.rt.store.feed().clone(),
            run: self.id.clone(),
            space: self.heard_in(),
            step,
            attempt,
            show_reasoning: created.is_some_and(|c| c.show_reasoning),
        };
        let mut chain = self.chain();
        let asked = prompted::asked(&mut chain, &mut request).await;
        self.course = course(chain.state()).cloned();
        if let Err(stopped) = asked {
            return self.stopped(stopped).await;
        }
        let held = chain.must_hold() || (agent.config.loop_.rewriting == Rewriting::Hold && chain.rewrites());
        let offered = (!request.tools.is_empty()).then_some(offer);
        let draft = Draft::new(audience, offered);
        self.speaking = Some(Speaking::begin(id, candidate, candidates, request, draft, chain, held));
        Ok(())
    }

    /// Takes the model's words, or what came of them.
    pub(super) async fn heard(&mut self, heard: Heard) -> Result<(), Stop> {
        match heard {
            Heard::More => Ok(()),
            Heard::Whole { mut reply, calls, chain, held } => {
                toolyard_store::failpoint!("model.after_stream");
                self.speaking = None;
                // Every step has the same tools: readers are told once.
                reply.notes.retain(|note| !self.warned.contains(note));
                self.warned.extend(reply.notes.iter().cloned());
                let Some(reply) = self.with_debt(Some(reply)) else { return Ok(()) };
                let Some((reply, calls, skipped)) = self.hooked(*chain, held, reply, calls).await? else {
                    return Ok(());
                };
                let calls = self.route(calls, &skipped).await?;
                self.tell(Input::ModelReplied { reply, calls }).await
            }
            Heard::Stopped(stopped) => {
                self.speaking = None;
                self.stopped(stopped).await
            }
            Heard::Failed { error, said } => {
                let id = self.speaking.take().map(|speaking| speaking.id);
                if let Some(id) = id.filter(|_| said.is_none())
                    && self.squeezes(id, &error)
                {
                    return Ok(());
                }
                let said = self.with_debt(said);
                let mut chain = self.chain();
                chain.error(&error.to_string()).await;
                let notes = self.notes(chain.leave());
                if !notes.is_empty() {
                    self.tell(Input::Noted(notes)).await?;
                }
                let detail = error.detail().unwrap_or_default().to_owned();
                let (code, message) = (error.code(), error.to_string());
                tracing::warn!(run = %self.id, code = code.as_str(), %message, "the model failed");
                self.tell(Input::ModelFailed { code, message, detail, said }).await
            }
        }
    }

    /// The model that the run asks for, or the agent's, and those behind it.
    pub(super) fn candidates(&self, agent: &LoadedAgent) -> Result<Vec<Candidate>, ModelError> {
        self.rt.registry.chain(&self.wanted(agent))
    }

    pub(super) fn wanted<'a>(&'a self, agent: &'a LoadedAgent) -> Wanted<'a> {
        let own = agent.model();
        match self.run.model() {
            Some(name) => Wanted { fallback: own.fallback, ..Wanted::named(name) },
            None => own,
        }
    }

    /// The sentence that ends a run whose agent has used up its share.
    async fn over_budget(&mut self, agent: &LoadedAgent) -> Result<Option<String>, Stop> {
        let Some(budget) = agent.config.budget.agent.clone() else { return Ok(None) };
        let (tenant, name) = (self.tenant.clone(), agent.config.agent.name.clone());
        let (span, period) = match budget.per {
            Period::Day => (Span::Day, "a day (UTC)"),
            Period::Month => (Span::Month, "a calendar month (UTC)"),
        };
        let used = self
            .patiently(move |tx| {
                let (tenant, name) = (tenant.clone(), name.clone());
                Box::pin(async move { usage::of(tx, &tenant, &name, span).await })
            })
            .await?;
        let tokens = budget.max_tokens.filter(|most| used.tokens >= *most);
        let cost = budget.max_cost_usd.filter(|most| used.cost >= crate::agents::millionths(*most));
        Ok(match (tokens, cost) {
            (Some(most), _) => Some(format!("The agent used its {most} tokens of {period}")),
            (None, Some(most)) => Some(format!("The agent used its {most} USD of {period}")),
            (None, None) => None,
        })
    }
}

fn output_schema(output: &OutputSection) -> OutputSchema {
    OutputSchema {
        name: output.name.clone().unwrap_or_else(|| "reply".to_owned()),
        schema: output.schema.clone(),
        strict: output.strict,
    }
}

/// All of a request but the conversation.
fn frame(agent: &LoadedAgent, offered: Vec<OfferedTool>, tools: Tools) -> Request {
    let config = &agent.config;
    let mut request = Request {
        system: config.agent.system.clone(),
        tools: offered,
        tool_choice: config.loop_.tool_choice,
        temperature: config.model.temperature,
        max_output_tokens: config.model.max_output_tokens,
        reasoning: config.model.reasoning.clone(),
        provider_options: config.model.provider_options.clone(),
        provider_tools: config.provider_tools.clone(),
        output: config.output.as_ref().map(output_schema),
        ..Request::default()
    };
    if tools == Tools::Off || request.tool_choice == ToolChoice::None {
        request.tools.clear();
        request.provider_tools.clear();
    }
    request
}
