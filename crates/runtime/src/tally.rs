//! How often tools are called, how that went and how long it took (row L31).
//! Counted in memory after the commit, so a call costs no statement more; the
//! sums go to the database now and then, and what a killed process had not
//! handed over is lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolyard_protocol::event::Event;
use toolyard_protocol::{AgentName, Hash, OutcomeKind, TenantId, Timestamp, ToolName};
use toolyard_store::tool_uses::{self, ToolUse};
use toolyard_store::{StoreError, Tx};

use crate::runtime::Runtime;

/// A call that ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) tenant: TenantId,
    pub(crate) agent: AgentName,
    /// The version of the agent.
    pub(crate) version: Hash,
    pub(crate) tool: ToolName,
    /// The run has such a tool.
    pub(crate) known: bool,
    pub(crate) outcome: OutcomeKind,
    pub(crate) at: Timestamp,
    /// How long it took, if that is known.
    pub(crate) ms: Option<u64>,
}

type Key = (TenantId, AgentName, ToolName);

/// What is not in the database yet.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<Key, ToolUse>>);

impl Tally {
    fn add(&self, tenant: TenantId, agent: AgentName, more: &ToolUse) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.entry((tenant, agent, more.tool.clone())).or_insert_with(|| ToolUse {
            tool: more.tool.clone(),
            calls: 0,
            failures: 0,
            total_ms: 0,
            last_at: more.last_at,
        });
        sum.calls += more.calls;
        sum.failures += more.failures;
        sum.total_ms = sum.total_ms.saturating_add(more.total_ms);
        sum.last_at = sum.last_at.max(more.last_at);
    }

    fn take(&self) -> BTreeMap<Key, ToolUse> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The calls that these events end.
pub(crate) fn ends(events: &[Event]) -> impl Iterator<Item = &toolyard_protocol::event::ToolReturned> {
    events.iter().filter_map(|event| match event {
        Event::ToolReturned(end) => Some(end),
        _ => None,
    })
}

impl Runtime {
    /// Counts calls whose end is committed.
    pub(crate) fn count(&self, ended: impl IntoIterator<Item = Ended>) {
        for end in ended {
            self.measure(&end);
            // A name that the model invented is nobody's tool.
            if !end.known {
                continue;
            }
            let failed = !matches!(end.outcome, OutcomeKind::Ok);
            let more = ToolUse {
                tool: end.tool,
                calls: 1,
                failures: i64::from(failed),
                total_ms: end.ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0),
                last_at: end.at,
            };
            self.tally.add(end.tenant, end.agent, &more);
        }
    }

    /// For `/metrics`. Only tools of agents have their name there: a name that
    /// a request or a model invents would be a label without end.
    fn measure(&self, end: &Ended) {
        let own = self.agents.cached(&end.tenant, &end.version);
        let spec = own.as_ref().and_then(|agent| agent.tools.set.find(end.tool.as_str()));
        let (tool, place) = spec.map_or(("other", "other"), |spec| (spec.name.as_str(), spec.place.target()));
        let (tool, outcome) = (tool.to_owned(), outcome_name(end.outcome));
        metrics::counter!("toolyard_tool_calls_total", "tool" => tool.clone(), "place" => place, "outcome" => outcome)
            .increment(1);
        if let Some(ms) = end.ms {
            // Exact up to 2^53.
            metrics::histogram!("toolyard_tool_seconds", "tool" => tool, "place" => place)
                .record(ms as f64 / 1000.0);
        }
    }

    /// Hands the sums over to the database.
    pub async fn hand_over_counts(self: &Arc<Self>) -> Result<(), StoreError> {
        let sums = self.tally.take();
        if sums.is_empty() {
            return Ok(());
        }
        let sums = Arc::new(sums);
        let told = sums.clone();
        let written = self.store.write(move |tx| Box::pin(async move { write(tx, &told).await })).await;
        if written.is_err() {
            for ((tenant, agent, _), sum) in sums.iter() {
                self.tally.add(tenant.clone(), agent.clone(), sum);
            }
        }
        written
    }
}

async fn write(tx: &mut Tx<'_>, sums: &BTreeMap<Key, ToolUse>) -> Result<(), StoreError> {
    for ((tenant, agent, _), sum) in sums {
        tool_uses::add(tx, tenant, agent, sum).await?;
    }
    Ok(())
}

const fn outcome_name(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Ok => "ok",
        OutcomeKind::Failed => "failed",
        OutcomeKind::Denied => "denied",
        OutcomeKind::Expired => "expired",
        OutcomeKind::Canceled => "canceled",
        OutcomeKind::Uncertain => "uncertain",
    }
}
