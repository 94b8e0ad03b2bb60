//! Rate limit and budget: so many turns, tokens and dollars for each person and
//! time, on each node.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Answer, Hook, HookError, Nature, Points, Prompt, Stage, Step};

pub(super) const ID: &str = "rate-limit";
const KEY: &str = "rate-limit";
/// People that are remembered at once; who was longest away is forgotten first.
const PEOPLE: usize = 10_000;
/// Turns within the time, if nothing else is bounded.
const TURNS: u32 = 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// 20 if nothing is bounded.
    pub turns: Option<u32>,
    /// Tokens, read and written, of the turns that ended.
    pub tokens: Option<u64>,
    /// What these turns cost, where the model has a price.
    pub cost_usd: Option<f64>,
    pub per_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { turns: None, tokens: None, cost_usd: None, per_seconds: 60 }
    }
}

/// One turn, or what one used.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: Instant,
    turns: u64,
    tokens: u64,
    /// Millionths of a dollar.
    cost: u64,
}

#[derive(Debug)]
pub struct RateLimit {
    options: Options,
    /// What each person did within the time, oldest first.
    people: Mutex<HashMap<String, Vec<Entry>>>,
}

impl RateLimit {
    pub fn new(options: Options) -> Self {
        Self { options, people: Mutex::default() }
    }

    fn with<T>(&self, who: &str, then: impl FnOnce(&mut Vec<Entry>, Instant) -> T) -> T {
        let (now, window) = (Instant::now(), Duration::from_secs(self.options.per_seconds));
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        if people.len() >= PEOPLE && !people.contains_key(who) {
            let last = |entries: &[Entry]| entries.last().map(|entry| entry.at);
            let oldest = people.iter().min_by_key(|(_, entries)| last(entries)).map(|(who, _)| who.clone());
            oldest.map(|who| people.remove(&who));
        }
        let entries = people.entry(who.to_owned()).or_default();
        entries.retain(|entry| now.duration_since(entry.at) < window);
        then(entries, now)
    }

    /// Counts a turn. The text says what is used up and how long to wait.
    fn begin(&self, who: &str) -> Result<(), HookError> {
        let Options { turns, tokens, cost_usd, per_seconds } = self.options;
        let turns = turns.or((tokens.is_none() && cost_usd.is_none()).then_some(TURNS));
        let window = Duration::from_secs(per_seconds);
        self.with(who, |entries, now| {
            let wait = entries.first().map_or(window, |e| window.saturating_sub(now.duration_since(e.at)));
            let seconds = wait.as_secs().max(1);
            let sum = |of: fn(&Entry) -> u64| entries.iter().map(of).fold(0, u64::saturating_add);
            if turns.is_some_and(|most| sum(|entry| entry.turns) >= u64::from(most)) {
                return Err(HookError(format!(
                    "Rate limit exceeded. Please try again in {seconds} seconds."
                )));
            }
            let used = sum(|entry| entry.tokens);
            if let Some(most) = tokens.filter(|most| used >= *most) {
                return Err(HookError(format!(
                    "Budget exceeded: {used} of {most} tokens in {per_seconds} seconds. Please try again in {seconds} seconds."
                )));
            }
            let spent = dollars(sum(|entry| entry.cost));
            if let Some(most) = cost_usd.filter(|most| spent >= *most) {
                return Err(HookError(format!(
                    "Budget exceeded: {spent} of {most} dollars in {per_seconds} seconds. Please try again in {seconds} seconds."
                )));
            }
            entries.push(Entry { at: now, turns: 1, tokens: 0, cost: 0 });
            Ok(())
        })
    }

    fn end(&self, who: &str, tokens: u64, cost: u64) {
        self.with(who, |entries, at| entries.push(Entry { at, turns: 0, tokens, cost }));
    }
}

#[expect(clippy::cast_precision_loss, reason = "budgets are far below 2^52 millionths")]
fn dollars(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

fn who(stage: &Stage<'_>) -> String {
    stage.scene.client.as_ref().map(ToString::to_string).unwrap_or_default()
}

impl Hook for RateLimit {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        let points = Points::of(&[HookName::OnUserMessage, HookName::OnAgentResponse]);
        Nature { critical: true, rewrites: false, points }
    }

    fn on_user_message<'a>(&'a self, stage: &'a mut Stage<'_>, _: &'a mut Prompt) -> Step<'a> {
        // A turn counts once, however many steps it takes.
        let counted = stage.state.get(KEY).is_some();
        let done = if counted { Ok(()) } else { self.begin(&who(stage)) };
        if done.is_ok() && !counted {
            stage.state.insert(KEY.to_owned(), json!({}));
        }
        Box::pin(std::future::ready(done))
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        // The answer tells of the whole run: what was counted before is not new.
        let (tokens, cost) =
            (answer.usage.input_tokens.saturating_add(answer.usage.output_tokens), answer.cost.unwrap_or(0));
        let before = stage.state.get(KEY).cloned().unwrap_or_default();
        let known = |name: &str| before.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.end(&who(stage), tokens.saturating_sub(known("tokens")), cost.saturating_sub(known("cost")));
        stage.state.insert(KEY.to_owned(), json!({ "tokens": tokens, "cost": cost }));
        Box::pin(std::future::ready(Ok(())))
    }
}
