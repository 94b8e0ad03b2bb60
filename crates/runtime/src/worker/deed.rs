//! What a call does in our own database: its effect and its outcome are one
//! commit, so it happens once.

use std::sync::Arc;

use serde_json::Value;
use toolyard_engine::{Effect, EffectId, Input, Run};
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::{CallId, ToolOutcome};
use toolyard_store::log::Appended;
use toolyard_store::{StoreError, Tx};
use toolyard_tools::CallContext;
use toolyard_tools::prebuilt::{self, Action, Refused};

use super::append::Undone;
use super::scribe::Scribe;
use super::{Stop, Worker};
use crate::blob::fit;
use crate::runtime::{Runtime, Start};

/// One call's deed.
#[derive(Clone)]
pub(super) struct Deed {
    pub(super) id: EffectId,
    call: CallId,
    args: Arc<Value>,
    untrusted: bool,
    context: CallContext,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Prebuilt(&'static Action),
}

/// What is so once the transaction is.
pub(super) struct Done {
    pub(super) next: Run,
    pub(super) appended: Appended,
    pub(super) starts: Vec<Start>,
}

impl Deed {
    pub(super) async fn perform(self, tx: &mut Tx<'_>, scribe: Scribe) -> Result<Done, Undone> {
        // A deed by somebody who lost the run would not be undone by the fence alone on every path.
        scribe.hold(tx).await?;
        let value = match self.kind {
            Kind::Prebuilt(action) => (action.act)(tx, &self.context, &self.args).await.map_err(told)?,
        };
        let fitted = fit(ToolOutcome::Ok(value));
        let (blob, untrusted) = (fitted.blob_ref(), self.untrusted);
        let input = Input::ToolEnded { call: self.call, outcome: fitted.outcome, blob, untrusted };
        let (next, draft) = scribe.draft(input, fitted.blob.into_iter().collect()).ok_or(Undone::Stale)?;
        let appended = scribe.write(tx, &draft).await?;
        Ok(Done { next, appended, starts: Vec::new() })
    }

    /// Works on the runs that the deed made.
    pub(super) fn begin(&self, _runtime: &Arc<Runtime>, _starts: Vec<Start>) {}

    pub(super) fn failed(&self, text: String) -> Input {
        let outcome = ToolOutcome::Failed(text);
        Input::ToolEnded { call: self.call.clone(), outcome, blob: None, untrusted: self.untrusted }
    }
}

/// A database that is away is not the model's business; any other trouble ends
/// this call, not the run.
fn told(refused: Refused) -> Undone {
    match refused {
        Refused::TellModel(text) => Undone::Refused(text),
        Refused::Store(e @ (StoreError::Unavailable(_) | StoreError::Full(_))) => e.into(),
        Refused::Store(e) => {
            tracing::warn!(error = %e, "a prebuilt tool failed");
            Undone::Refused("The tool could not store its result".to_owned())
        }
    }
}

impl Worker {
    /// The deed of a call that is one.
    pub(super) fn deed(&self, effect: &Effect) -> Option<Deed> {
        let Effect::RunTool { call, tool, args, untrusted, .. } = effect else { return None };
        let spec = self.agent.as_ref().ok()?.tools.set.find(tool.as_str())?;
        let kind = match &spec.execution {
            Execution::Prebuilt(prebuilt) => Kind::Prebuilt(prebuilt::find(&prebuilt.action)?),
            _ => return None,
        };
        Some(Deed {
            id: effect.id(),
            call: call.clone(),
            args: args.clone(),
            untrusted: *untrusted,
            context: self.context_of(call)?,
            kind,
        })
    }

    /// Does the first due deed, if there is one. Its append changes what is due.
    pub(super) async fn perform_deed(&mut self, due: &[Effect]) -> Result<bool, Stop> {
        let Some(deed) = due.iter().find_map(|effect| self.deed(effect)) else { return Ok(false) };
        self.act(deed).await?;
        Ok(true)
    }
}
