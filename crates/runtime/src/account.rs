//! What a run has used, as its log says.

use toolyard_engine::Run;
use toolyard_protocol::event::Event;
use toolyard_protocol::run::Usage;
use toolyard_protocol::{RunId, TenantId, limits};
use toolyard_store::{StoreError, Tx, log};

/// Tokens and money of a run and of the runs below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    pub usage: Usage,
    /// Millionths of a dollar; none while no price was known.
    pub cost: Option<u64>,
}

/// The account of a run. One that has ended says it with its last event; of a
/// live one the log is read.
pub async fn account(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    last_seq: i64,
) -> Result<Account, StoreError> {
    if let Some(Event::RunFinished(end)) = log::event(tx, tenant, run, last_seq).await? {
        return Ok(Account { usage: end.usage, cost: end.cost });
    }
    let mut state = Run::new(run.clone());
    let mut after = 0;
    loop {
        let page = log::read(tx, tenant, run, after, limits::LOG_PAGE).await?;
        page.iter().for_each(|logged| state.fold(&logged.event));
        match page.last() {
            Some(last) if page.len() == limits::LOG_PAGE as usize => after = last.seq,
            _ => return Ok(Account { usage: state.usage(), cost: state.cost() }),
        }
    }
}
