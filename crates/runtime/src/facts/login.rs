//! A user has logged in somewhere: what waited for it goes on.

use std::sync::Arc;

use serde_json::json;
use toolyard_engine::facts::Answer;
use toolyard_protocol::event::Event;
use toolyard_protocol::principal::{Actor, Viewer};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{EntityId, ErrorCode, Hash, KeyKind, TenantId, WaitId, limits};
use toolyard_store::{StoreError, log, waits};

use super::{AnswerIn, Caller};
use crate::runtime::Runtime;

impl Runtime {
    /// Answers every open question of this tenant that asked this user for
    /// this login. Says how many went on.
    pub async fn logged_in(
        self: &Arc<Self>,
        tenant: &TenantId,
        entity: &EntityId,
        account: &Hash,
    ) -> Result<usize, StoreError> {
        let mut went_on = 0;
        for wait in self.waiting_for(tenant, entity, account).await? {
            let caller = Caller {
                tenant: tenant.clone(),
                viewer: Viewer { kind: KeyKind::Public, entity: Some(entity.clone()), role: None },
                actor: Actor::Gateway {},
            };
            let answer = Answer::Provide(json!({ "loggedIn": true }));
            let answer = AnswerIn { answer, remember: None, args_hash: None };
            match self.answer(caller, wait, answer).await {
                Ok(()) => went_on += 1,
                // Somebody was quicker, or the run has ended.
                Err(e) if matches!(e.code, ErrorCode::WaitEnded | ErrorCode::RunEnded) => {}
                Err(e) => tracing::warn!(error = %e, "a call that waited for a login could not go on"),
            }
        }
        Ok(went_on)
    }

    async fn waiting_for(
        &self,
        tenant: &TenantId,
        entity: &EntityId,
        account: &Hash,
    ) -> Result<Vec<WaitId>, StoreError> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let (tenant, account, from) = (tenant.clone(), account.clone(), after.clone());
            let rule = AnswerRule::Trigger { entity: entity.clone() };
            let (full, last, page) = self
                .store
                .read::<_, StoreError, _>(move |tx| {
                    Box::pin(async move {
                        let kind = Some(WaitKind::Credential);
                        let limit = limits::PAGE_MAX;
                        let rows =
                            waits::list_open(tx, &tenant, None, None, kind, from.as_ref(), limit).await?;
                        let mut ours = Vec::new();
                        for row in rows.iter().filter(|row| row.wait.rule == rule) {
                            let asked = log::event(tx, &tenant, &row.wait.run, row.opened_seq).await?;
                            let Some(Event::Asked(asked)) = asked else { continue };
                            let wanted = asked.state.shown().map(|state| &state["account"]);
                            if wanted.is_some_and(|w| w.as_str() == Some(account.as_str())) {
                                ours.push(row.wait.id.clone());
                            }
                        }
                        let last = rows.last().map(|row| (row.wait.opened_at, row.wait.id.clone()));
                        Ok((rows.len() == limit as usize, last, ours))
                    })
                })
                .await?;
            found.extend(page);
            if !full {
                return Ok(found);
            }
            after = last;
        }
    }
}
