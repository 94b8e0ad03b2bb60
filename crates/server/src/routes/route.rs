//! One route as data: what it takes, what it gives, who may call it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::call::Call;
use crate::app::App;
use crate::http::Refusal;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nobody is asked for a key.
    Open,
    /// Nobody on this machine; a backend if other machines reach the gateway.
    Local,
    /// A backend.
    Secret,
    /// A backend, or a user of the tenant.
    Either,
    /// A backend, or a member of the space that `{space}` or `{run}` names.
    Member,
    /// As `Either`, or whoever holds a signed address.
    Signed,
    /// As `Either`; who reads an agent card needs no key.
    Card,
}

impl Access {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Local => "local",
            Self::Secret => "secret",
            Self::Either => "either",
            Self::Member => "member",
            Self::Signed => "signed",
            Self::Card => "card",
        }
    }
}

/// What a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    None,
    Json,
    /// JSON that brings messages.
    Conversation,
    /// JSON that brings tool results.
    Results,
    /// Any bytes.
    File,
}

pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;
type Answered = BoxFuture<'static, Result<Response, Refusal>>;

/// The query of a visit, and what it is answered.
type VisitedBy = dyn Fn(Arc<App>, HashMap<String, String>) -> Answered + Send + Sync;

/// What opens a socket.
type OpenedBy = fn(Arc<App>, Parts) -> Answered;

/// The head and the body of a caller who has no key yet.
type KnockedAt = dyn Fn(Arc<App>, HeaderMap, Bytes) -> Answered + Send + Sync;

#[derive(Clone)]
pub(crate) enum Handler {
    Open(Arc<dyn Fn(Arc<App>) -> Answered + Send + Sync>),
    /// Needs no key either, and reads the query.
    Visited(Arc<VisitedBy>),
    /// Gives a key to who may have one.
    Knocked(Arc<KnockedAt>),
    Keyed(Arc<dyn Fn(Call) -> Answered + Send + Sync>),
    /// Opens a socket.
    Socket(OpenedBy),
}

/// A line of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) body: BodyKind,
    pub(crate) summary: &'static str,
    pub(crate) request: Option<SchemaOf>,
    /// Parameters of the query and what they mean.
    pub(crate) query: &'static [(&'static str, &'static str)],
    pub(crate) status: u16,
    pub(crate) response: Option<SchemaOf>,
    pub(crate) media: &'static str,
    /// Of a socket: what the caller says, and what it hears.
    pub(crate) messages: Option<(SchemaOf, SchemaOf)>,
    /// Takes `Idempotency-Key`.
    pub(crate) once: bool,
    /// Answers with a stream of events to who accepts one.
    pub(crate) streams: bool,
    /// Refusals are plain text: its clients show the body to people.
    pub(crate) plain: bool,
    /// Its own transaction finds what the path names: for a backend, which has a
    /// seat everywhere, nobody looks before.
    pub(crate) finds: bool,
    pub(crate) handler: Handler,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Route {
    /// A route that needs no key.
    pub(crate) fn open<F, R>(path: &'static str, summary: &'static str, handler: F) -> Self
    where
        F: Fn(Arc<App>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Refusal>> + Send + 'static,
    {
        let handler = Handler::Open(Arc::new(move |app| Box::pin(handler(app))));
        Self::new(Method::GET, path, Access::Open, summary, handler)
    }

    /// A route that needs no key and gets the query.
    pub(crate) fn visited<F, R>(path: &'static str, summary: &'static str, handler: F) -> Self
    where
        F: Fn(Arc<App>, HashMap<String, String>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Refusal>> + Send + 'static,
    {
        let handler = Handler::Visited(Arc::new(move |app, query| Box::pin(handler(app, query))));
        Self::new(Method::GET, path, Access::Open, summary, handler)
    }

    /// A route whose caller asks for a key.
    pub(crate) fn knocked<F, R>(path: &'static str, summary: &'static str, handler: F) -> Self
    where
        F: Fn(Arc<App>, HeaderMap, Bytes) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Refusal>> + Send + 'static,
    {
        let handler = Handler::Knocked(Arc::new(move |app, head, body| Box::pin(handler(app, head, body))));
        Self::new(Method::POST, path, Access::Open, summary, handler)
    }

    /// The route that opens a socket, and the messages on it.
    pub(crate) fn socket<C: JsonSchema, G: JsonSchema>(
        path: &'static str,
        summary: &'static str,
        open: OpenedBy,
    ) -> Self {
        let mut route = Self::new(Method::GET, path, Access::Either, summary, Handler::Socket(open));
        route.status = 101;
        route.messages = Some((schema_of::<C>, schema_of::<G>));
        route
    }

    /// A route whose caller is known.
    pub(crate) fn keyed<F, R>(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: F,
    ) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Refusal>> + Send + 'static,
    {
        let handler = Handler::Keyed(Arc::new(move |call| Box::pin(handler(call))));
        Self::new(method, path, access, summary, handler)
    }

    fn new(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: Handler,
    ) -> Self {
        Self {
            method,
            path,
            access,
            body: BodyKind::None,
            summary,
            request: None,
            query: &[],
            status: 200,
            response: None,
            media: "application/json",
            messages: None,
            once: false,
            streams: false,
            plain: false,
            finds: false,
            handler,
        }
    }

    /// Refuses in plain text.
    pub(crate) fn plain(mut self) -> Self {
        self.plain = true;
        self
    }
    /// Finds by itself what the path names, or refuses and changes nothing.
    pub(crate) fn finds(mut self) -> Self {
        self.finds = true;
        self
    }
    /// Open for this machine only.
    pub(crate) fn local(mut self) -> Self {
        self.access = Access::Local;
        self
    }
    pub(crate) fn takes<T: JsonSchema>(mut self, body: BodyKind) -> Self {
        self.body = body;
        self.request = Some(schema_of::<T>);
        self
    }
    pub(crate) fn takes_bytes(mut self) -> Self {
        self.body = BodyKind::File;
        self
    }
    pub(crate) fn asks(mut self, query: &'static [(&'static str, &'static str)]) -> Self {
        self.query = query;
        self
    }
    pub(crate) fn gives<T: JsonSchema>(mut self, status: u16) -> Self {
        self.status = status;
        self.response = Some(schema_of::<T>);
        self
    }
    pub(crate) fn gives_nothing(mut self) -> Self {
        self.status = 204;
        self
    }
    pub(crate) fn media(mut self, media: &'static str) -> Self {
        self.media = media;
        self
    }
    pub(crate) fn once(mut self) -> Self {
        self.once = true;
        self
    }
    pub(crate) fn or_streams(mut self) -> Self {
        self.streams = true;
        self
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.method, self.path, self.access.as_str())
    }
}
