//! What a call does in our own database: its effect and its outcome are one
//! commit, so it happens once.

use std::sync::Arc;

use serde_json::Value;
use toolyard_engine::{Effect, EffectId, Input, Run};
use toolyard_protocol::agent::execution::{AiAgent, Execution};
use toolyard_protocol::event::{BlobRef, Event};
use toolyard_protocol::tool::{ToolSpec, Visibility};
use toolyard_protocol::{CallId, Timestamp, ToolOutcome, limits};
use toolyard_store::log::Appended;
use toolyard_store::{StoreError, Tx};
use toolyard_tools::CallContext;
use toolyard_tools::prebuilt::{self, Act, Given, Refused, Way};

use super::append::Undone;
use super::scribe::Scribe;
use super::search::{self, SEARCH};
use super::{Stop, Worker};
use crate::blob::fit;
use crate::child::{self, Sent};
use crate::runtime::Runtime;
use crate::starting::Desk;

/// One call's deed.
#[derive(Clone)]
pub(super) struct Deed {
    pub(super) id: EffectId,
    pub(super) call: CallId,
    args: Arc<Value>,
    untrusted: bool,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Prebuilt(Act, Box<(CallContext, Given)>),
    /// What is known already: a person's answer, or what a search found.
    Told(Value),
    Child {
        rt: Arc<Runtime>,
        agent: Arc<AiAgent>,
        visibility: Visibility,
        expires: Timestamp,
    },
}

/// What is so once the transaction is.
pub(super) struct Done {
    pub(super) next: Run,
    pub(super) appended: Appended,
    pub(super) events: Arc<[Event]>,
    pub(super) desk: Desk,
}

impl Deed {
    pub(super) async fn perform(
        self,
        tx: &mut Tx<'_>,
        scribe: Scribe,
        mut desk: Desk,
    ) -> Result<Done, Undone> {
        // First of all: nothing is done for somebody who has lost the run.
        scribe.hold(tx).await?;
        let (input, blobs) = self.input(tx, &scribe, &mut desk).await.map_err(told)?;
        let (next, draft) = scribe.draft(input, blobs).ok_or(Undone::Stale)?;
        let appended = scribe.write(tx, &draft, &mut desk).await?;
        Ok(Done { next, appended, events: draft.events, desk })
    }

    /// Does it; answers what the engine is to hear.
    async fn input(
        self,
        tx: &mut Tx<'_>,
        scribe: &Scribe,
        desk: &mut Desk,
    ) -> Result<(Input, Vec<(BlobRef, Vec<u8>)>), Refused> {
        match self.kind {
            Kind::Prebuilt(act, asked) => {
                let (context, given) = &*asked;
                let value = act(tx, context, given).await?;
                let fitted = fit(ToolOutcome::Ok(value));
                let (blob, untrusted) = (fitted.blob_ref(), self.untrusted);
                let input = Input::ToolEnded {
                    call: self.call,
                    outcome: fitted.outcome,
                    blob,
                    untrusted,
                    notes: Vec::new(),
                };
                Ok((input, fitted.blob.into_iter().collect()))
            }
            Kind::Told(value) => {
                let (outcome, untrusted) = (ToolOutcome::Ok(value), self.untrusted);
                Ok((
                    Input::ToolEnded { call: self.call, outcome, blob: None, untrusted, notes: Vec::new() },
                    Vec::new(),
                ))
            }
            Kind::Child { rt, agent, visibility, expires } => {
                let sent = Sent {
                    parent: &scribe.run,
                    call: &self.call,
                    agent: &agent,
                    visibility,
                    args: &self.args,
                };
                let child = child::send(&rt, tx, &scribe.tenant, sent, desk).await?;
                let stream = agent.stream;
                Ok((
                    Input::ChildStarted { call: self.call, child, expires: Some(expires), stream },
                    Vec::new(),
                ))
            }
        }
    }

    pub(super) fn failed(&self, text: String) -> Input {
        let outcome = ToolOutcome::Failed(text);
        Input::ToolEnded {
            call: self.call.clone(),
            outcome,
            blob: None,
            untrusted: self.untrusted,
            notes: Vec::new(),
        }
    }
}

/// A database that is away is not the model's business; any other trouble ends
/// this call, not the run.
fn told(refused: Refused) -> Undone {
    match refused {
        Refused::TellModel(text) => Undone::Refused(text),
        Refused::Store(e @ (StoreError::Unavailable(_) | StoreError::Full(_))) => e.into(),
        Refused::Store(e) => {
            tracing::warn!(error = %e, "a tool of the gateway failed");
            Undone::Refused("The tool could not store its result".to_owned())
        }
    }
}

/// Its calls are deeds, whatever they are given.
pub(super) fn is_deed(spec: &ToolSpec) -> bool {
    match &spec.execution {
        Execution::Prebuilt(prebuilt) => {
            prebuilt::find(&prebuilt.action).is_none_or(|p| !matches!(p.way, Way::Read))
        }
        Execution::AiAgent(_) => true,
        _ => false,
    }
}

impl Worker {
    /// The deed of a call that is one.
    fn deed(&self, effect: &Effect) -> Option<Deed> {
        let Effect::RunTool { call, tool, args, untrusted, provided, .. } = effect else { return None };
        let spec = self.tools()?.set.find(tool.as_str())?;
        let kind = match &spec.execution {
            Execution::Prebuilt(prebuilt) if prebuilt.action == SEARCH => {
                Kind::Told(search::search(&self.tools()?.set, args))
            }
            Execution::Prebuilt(prebuilt) => match prebuilt::find(&prebuilt.action)?.way {
                Way::Act(act) => {
                    let given = Given { args: args.clone(), options: prebuilt.clone() };
                    Kind::Prebuilt(act, Box::new((self.context_of(call)?, given)))
                }
                Way::AskUser => Kind::Told(prebuilt::answered(provided.as_deref()?)),
                Way::Read => return None,
            },
            Execution::AiAgent(agent) => {
                let patience = agent.timeout.or(spec.timeout_ms).unwrap_or(limits::CLIENT_EXPIRES_MS);
                Kind::Child {
                    rt: self.rt.clone(),
                    agent: Arc::new(agent.clone()),
                    visibility: spec.visibility,
                    expires: self.now().plus_millis(patience),
                }
            }
            _ => return None,
        };
        let (id, call, args) = (effect.id(), call.clone(), args.clone());
        Some(Deed { id, call, args, untrusted: *untrusted, kind })
    }

    /// Does the first due deed, if there is one. Its append changes what is due.
    pub(super) async fn perform_deed(&mut self, due: &[Effect]) -> Result<bool, Stop> {
        let Some(deed) = due.iter().find_map(|effect| self.deed(effect)) else { return Ok(false) };
        self.act(deed).await?;
        Ok(true)
    }
}
