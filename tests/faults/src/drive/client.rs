//! A client that asks until it is answered, and that loses answers.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::nodes::SECRET;
use super::storm::rest;
use super::{Yard, now_ms};
use crate::dice::Dice;
use crate::history::Record;

/// How long something may take when nothing is broken any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

impl Yard {
    /// Sends a request until it is answered, to whichever node is there. Now and
    /// then the client hangs up before the answer comes, and asks again.
    pub(crate) async fn ask(
        &self,
        dice: &mut Dice,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<(u16, Value)> {
        let started = Instant::now();
        let mut refused: Option<(u16, i64, i64)> = None;
        loop {
            let hurry = !self.is_calm() && dice.chance(10);
            let once = self.once(dice, method, path, body, key);
            let answer = match hurry {
                true => tokio::time::timeout(Duration::from_millis(3), once).await.ok().flatten(),
                false => once.await,
            };
            if let Some((status @ 500..=599, _)) = answer {
                let now = now_ms();
                refused = Some((status, refused.map_or(now, |(_, from, _)| from), now));
            }
            let over = !matches!(answer, Some((429 | 502..=504, _)) | None);
            if over && let Some((status, from, to)) = refused {
                self.note(Record::Refused { asked: format!("{method} {path}"), status, from, to });
            }
            if over {
                return answer;
            }
            if self.quiet() > PATIENCE && started.elapsed() > PATIENCE {
                return None;
            }
            rest(20).await;
        }
    }

    async fn once(
        &self,
        dice: &mut Dice,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<(u16, Value)> {
        let url = self.nodes[dice.below(self.nodes.len())].url()?;
        let mut request = self.http.request(method.parse().ok()?, format!("{url}{path}"));
        request = request.header("x-secret-key", SECRET);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    pub(crate) async fn get(&self, dice: &mut Dice, path: &str) -> Value {
        match self.ask(dice, "GET", path, None, None).await {
            Some((200, value)) => value,
            other => panic!("GET {path}: {other:?}\n{}", self.logs()),
        }
    }

    pub(crate) async fn post(&self, dice: &mut Dice, path: &str, body: &Value) -> Value {
        let key = uuid::Uuid::now_v7().simple().to_string();
        match self.ask(dice, "POST", path, Some(body), Some(&key)).await {
            Some((200..=299, value)) => value,
            other => panic!("POST {path}: {other:?}\n{}", self.logs()),
        }
    }

    /// What the gateways wrote, for a failure.
    pub(crate) fn logs(&self) -> String {
        let tail = |log: String| log.lines().rev().take(60).map(str::to_owned).collect::<Vec<_>>();
        self.nodes
            .iter()
            .map(|node| tail(node.log()).into_iter().rev().collect::<Vec<_>>().join("\n"))
            .collect()
    }
}
