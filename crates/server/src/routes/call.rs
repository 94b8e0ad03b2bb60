//! A request whose caller is known: what a handler gets.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_protocol::{
    ApiError, ErrorCode, Hash, Principal, RunId, SpaceId, TenantId, TraceParent, Viewer, limits,
};
use toolyard_store::idempotency::{self, Known, Scope};
use toolyard_store::runs::RunRow;
use toolyard_store::spaces::Space;
use toolyard_store::{Store, StoreError, Tx};

use super::answer;
use crate::app::App;
use crate::http::listen::Cut;
use crate::http::{Refusal, body};

/// What a member route is about: looked up and allowed, but for a backend.
#[derive(Debug, Clone)]
pub(crate) enum Sight {
    Nothing,
    /// A backend may do it wherever it is; nobody has looked yet (see [`super::route::Route::finds`]).
    Backend(Viewer),
    Space(Box<Space>, Viewer),
    Run(Box<RunRow>, Viewer),
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) principal: Principal,
    pub(crate) sight: Sight,
    pub(crate) params: HashMap<String, String>,
    pub(crate) query: HashMap<String, String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Method and path as the table has them.
    pub(crate) route: &'static str,
    /// The address itself was signed: the file may be read.
    pub(crate) signed: bool,
    pub(crate) cut: Option<Cut>,
}

/// What a creating transaction answers.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Call {
    pub(crate) fn tenant(&self) -> &TenantId {
        &self.principal.tenant
    }
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.app.store
    }

    /// Where the request stands in its caller's trace.
    pub(crate) fn trace(&self) -> Option<TraceParent> {
        let mut told = self.headers.get_all("traceparent").iter();
        let (first, second) = (told.next()?, told.next());
        // Two of them are out of form, like a bad one.
        second.is_none().then(|| TraceParent::parse(first.to_str().ok()?)).flatten()
    }

    /// A path parameter as an id. What is no id is not found.
    pub(crate) fn id<T, E>(
        &self,
        name: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Refusal> {
        let text = self.params.get(name).map(String::as_str).unwrap_or_default();
        parse(text).map_err(|_| Refusal::not_found(what))
    }

    /// The JSON body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        if !self.body.is_empty() {
            body::check_type(&self.headers)?;
        }
        Ok(body::parse(&self.body)?)
    }

    /// The space of a member route.
    pub(crate) fn space(&self) -> Result<(&Space, &Viewer), Refusal> {
        match &self.sight {
            Sight::Space(space, viewer) => Ok((space, viewer)),
            Sight::Nothing | Sight::Backend(_) | Sight::Run(..) => Err(Refusal::not_found("SmartSpace")),
        }
    }

    /// The name of the space of a member route, which a backend's route finds itself.
    pub(crate) fn space_named(&self) -> Result<(SpaceId, Viewer), Refusal> {
        match &self.sight {
            Sight::Backend(viewer) => Ok((self.id("space", "SmartSpace", SpaceId::parse)?, viewer.clone())),
            Sight::Nothing | Sight::Space(..) | Sight::Run(..) => {
                self.space().map(|(space, viewer)| (space.id.clone(), viewer.clone()))
            }
        }
    }

    /// The run of a member route.
    pub(crate) fn run(&self) -> Result<(&RunRow, &Viewer), Refusal> {
        match &self.sight {
            Sight::Run(run, viewer) => Ok((run, viewer)),
            Sight::Nothing | Sight::Backend(_) | Sight::Space(..) => Err(Refusal::not_found("Run")),
        }
    }

    /// As [`Call::space_named`], of a run.
    pub(crate) fn run_named(&self) -> Result<(RunId, Viewer), Refusal> {
        match &self.sight {
            Sight::Backend(viewer) => Ok((self.id("run", "Run", RunId::parse)?, viewer.clone())),
            Sight::Nothing | Sight::Space(..) | Sight::Run(..) => {
                self.run().map(|(run, viewer)| (run.id.clone(), viewer.clone()))
            }
        }
    }

    /// Whose line of the audit this is.
    pub(crate) fn actor(&self) -> String {
        actor(&self.principal)
    }

    /// Does something to its end, also if the caller hangs up.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        work: BoxFuture<'static, Result<T, StoreError>>,
    ) -> Result<T, Refusal> {
        let done = self.app.tasks.detached(work).await;
        let panicked = || Refusal::new(ErrorCode::Internal, "Something went wrong inside the gateway.");
        Ok(done.ok_or_else(panicked)??)
    }

    /// The `Idempotency-Key` of this request, bound to caller, route and body.
    pub(crate) fn scope(&self) -> Result<Option<Scope>, Refusal> {
        let Some(key) = self.headers.get("idempotency-key") else { return Ok(None) };
        let key = key.to_str().unwrap_or_default();
        if key.is_empty() || key.len() > limits::IDEMPOTENCY_KEY {
            let most = limits::IDEMPOTENCY_KEY;
            return Err(ApiError::limit(
                ErrorCode::BadRequest,
                most as u64,
                format!("Idempotency-Key must have 1 to {most} characters"),
            )
            .into());
        }
        let user = self.principal.entity.as_ref().map_or("", |e| e.as_str());
        // The place is part of what was asked.
        let mut asked: Vec<_> = self.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        asked.sort();
        let mut said = asked.join("\n").into_bytes();
        said.push(0);
        said.extend_from_slice(&self.body);
        Ok(Some(Scope {
            tenant: self.tenant().clone(),
            caller: format!("{}/{user}", self.principal.key),
            route: self.route,
            key: key.to_owned(),
            body_hash: Hash::of(&said),
        }))
    }

    /// Runs a creating transaction; with an `Idempotency-Key`, at most once.
    pub(crate) async fn once<F>(&self, make: F) -> Result<Response, Refusal>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<Made, Refusal>> + Send + 'static,
    {
        let scope = self.scope()?;
        let (status, text) = self
            .store()
            .write(move |tx| {
                Box::pin(async move {
                    let Some(scope) = scope else {
                        let made = make(tx).await?;
                        return Ok((made.status, made.body.to_string()));
                    };
                    match idempotency::begin(tx, &scope).await? {
                        Known::Stored { status, response } => Ok((status, response)),
                        Known::Mismatch => Err(mismatch()),
                        Known::Fresh => {
                            let made = make(tx).await?;
                            let text = made.body.to_string();
                            idempotency::finish(tx, &scope, made.status, &text).await?;
                            Ok((made.status, text))
                        }
                    }
                })
            })
            .await
            .map_err(|e: Refusal| e)?;
        Ok(answer::text(status, text))
    }
}

/// Whose line of the audit something is.
pub(crate) fn actor(by: &Principal) -> String {
    match &by.entity {
        Some(entity) => format!("{} {entity}", by.key),
        None => by.key.to_string(),
    }
}

pub(crate) fn mismatch() -> Refusal {
    Refusal::new(
        ErrorCode::IdempotencyMismatch,
        "This Idempotency-Key was used with another body. Use a new key for a new request.",
    )
}
