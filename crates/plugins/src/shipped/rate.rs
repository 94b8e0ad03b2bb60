//! Rate limit: so many turns a minute for each person, on each node.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Hook, HookError, Nature, Points, Prompt, Stage, Step};

pub(super) const ID: &str = "rate-limit";
const KEY: &str = "rate-limit";
/// People that are remembered at once; who was longest away is forgotten first.
const PEOPLE: usize = 10_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    pub turns: u32,
    pub per_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { turns: 20, per_seconds: 60 }
    }
}

#[derive(Debug)]
pub struct RateLimit {
    options: Options,
    turns: Mutex<HashMap<String, Vec<Instant>>>,
}

impl RateLimit {
    pub fn new(options: Options) -> Self {
        Self { options, turns: Mutex::default() }
    }

    /// Counts a turn. The text says how long to wait.
    fn count(&self, who: &str) -> Result<(), HookError> {
        let (now, window) = (Instant::now(), Duration::from_secs(self.options.per_seconds));
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= PEOPLE && !turns.contains_key(who) {
            let oldest =
                turns.iter().min_by_key(|(_, times)| times.last().copied()).map(|(who, _)| who.clone());
            oldest.map(|who| turns.remove(&who));
        }
        let times = turns.entry(who.to_owned()).or_default();
        times.retain(|at| now.duration_since(*at) < window);
        if times.len() >= usize::try_from(self.options.turns).unwrap_or(usize::MAX) {
            let wait = times.first().map_or(window, |at| window.saturating_sub(now.duration_since(*at)));
            let seconds = wait.as_secs().max(1);
            return Err(HookError(format!("Rate limit exceeded. Please try again in {seconds} seconds.")));
        }
        times.push(now);
        Ok(())
    }
}

impl Hook for RateLimit {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        Nature { critical: true, rewrites: false, points: Points::of(&[HookName::OnUserMessage]) }
    }

    fn on_user_message<'a>(&'a self, stage: &'a mut Stage<'_>, _: &'a mut Prompt) -> Step<'a> {
        // A turn counts once, however many steps it takes.
        let counted = stage.state.get(KEY).is_some();
        let who = stage.scene.client.as_ref().map(ToString::to_string).unwrap_or_default();
        let done = if counted { Ok(()) } else { self.count(&who) };
        if done.is_ok() {
            stage.state.insert(KEY.to_owned(), true.into());
        }
        Box::pin(std::future::ready(done))
    }
}
