//! All tools of a server, page by page, within limits. One bad tool is left
//! out with a reason; it never takes the others with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use toolyard_protocol::limits;
use toolyard_schema::Schemas;

use crate::connect::Live;
use crate::fault::Fault;
use crate::settings::ServerName;
use crate::tool::{self, LeftOut, ListedTool};
use crate::wire::pending::{spoilt_kind, unwrap};

/// The tools of a server at one time, sorted by the server's names.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: BTreeMap<String, Arc<ListedTool>>,
    pub(crate) left_out: Vec<LeftOut>,
    /// The server says that the list is old then.
    pub(crate) stale: Option<Instant>,
}

/// Names that came, went and changed between two lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl Listing {
    pub(crate) fn difference(&self, newer: &Self) -> Difference {
        let mut out = Difference::default();
        for (name, tool) in &newer.tools {
            match self.tools.get(name) {
                None => out.added.push(name.clone()),
                Some(old) if old.fingerprint != tool.fingerprint => out.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        out.removed = self.tools.keys().filter(|name| !newer.tools.contains_key(*name)).cloned().collect();
        out
    }
}

/// Reads the whole list.
pub(crate) async fn list(
    server: &ServerName,
    live: &Live,
    schemas: &Schemas,
    time: Duration,
) -> Result<Listing, Fault> {
    let raw = match tokio::time::timeout(time, Box::pin(pages(live))).await {
        Ok(raw) => raw?,
        Err(_) => return Err(Fault::passing(format!("it did not list its tools within {time:?}"))),
    };
    let (server, schemas) = (server.clone(), schemas.clone());
    // Schemas take milliseconds each to compile.
    tokio::task::spawn_blocking(move || read_all(&server, &raw, &schemas))
        .await
        .map_err(|_| Fault::passing("reading its tools failed"))
}

struct Raw {
    tools: Vec<Value>,
    left_out: Vec<LeftOut>,
    ttl: Option<Duration>,
}

async fn pages(live: &Live) -> Result<Raw, Fault> {
    let mut raw = Raw { tools: Vec::new(), left_out: Vec::new(), ttl: None };
    let mut cursor: Option<String> = None;
    for _ in 0..limits::MCP_PAGES {
        let params = cursor.take().map(|at| PaginatedRequestParams::default().with_cursor(Some(at)));
        let request = match params {
            Some(params) => ListToolsRequest::with_param(params),
            None => ListToolsRequest::default(),
        };
        let page = match ask(live, ClientRequest::ListToolsRequest(request)).await {
            Ok(page) => page,
            Err(Refusal::NoTools) => return Ok(raw),
            Err(Refusal::Fault(fault)) => return Err(fault),
        };
        let Some(tools) = page.get("tools").and_then(Value::as_array) else {
            return Err(Fault::passing("its list of tools has no tools in it"));
        };
        raw.tools.extend(tools.iter().cloned());
        raw.ttl = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis).or(raw.ttl);
        if raw.tools.len() > limits::MCP_TOOLS {
            let why = format!("the server has more than {} tools", limits::MCP_TOOLS);
            let more = raw.tools.drain(limits::MCP_TOOLS..);
            raw.left_out.extend(more.map(|tool| {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                LeftOut { name: toolyard_schema::clean(name, 128).text, why: why.clone() }
            }));
            return Ok(raw);
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).filter(|c| !c.is_empty()).map(str::to_owned);
        if cursor.is_none() {
            return Ok(raw);
        }
    }
    let why = format!("the list has more than {} pages", limits::MCP_PAGES);
    raw.left_out.push(LeftOut { name: "…".to_owned(), why });
    Ok(raw)
}

enum Refusal {
    /// The server has no tools at all.
    NoTools,
    Fault(Fault),
}

async fn ask(live: &Live, request: ClientRequest) -> Result<Value, Refusal> {
    let gone = || Refusal::Fault(Fault::passing("the connection ended while its tools were listed"));
    let handle = live
        .peer
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .map_err(|_| gone())?;
    let id = handle.id.to_string();
    match handle.await_response().await {
        Ok(result) => Ok(unwrap(result)),
        Err(ServiceError::McpError(e)) if e.code == ErrorCode::METHOD_NOT_FOUND => Err(Refusal::NoTools),
        Err(ServiceError::McpError(e)) if spoilt_kind(&e).is_some() => {
            let most = limits::MCP_MESSAGE_BYTES;
            Err(Refusal::Fault(Fault::passing(format!(
                "its list cannot be read or is larger than {most} bytes"
            ))))
        }
        Err(ServiceError::McpError(e)) => {
            let text = toolyard_schema::clean(&e.message, 300).text;
            Err(Refusal::Fault(Fault::passing(format!(
                "it refuses to list its tools: error {}: {text}",
                e.code.0
            ))))
        }
        Err(_) => Err(live.pending.take_fault(&id).map_or_else(gone, Refusal::Fault)),
    }
}

fn read_all(server: &ServerName, raw: &Raw, schemas: &Schemas) -> Listing {
    let mut listing = Listing { left_out: raw.left_out.clone(), ..Listing::default() };
    listing.stale = raw.ttl.filter(|ttl| !ttl.is_zero()).map(|ttl| Instant::now() + ttl);
    for entry in &raw.tools {
        match tool::read(server, entry, schemas) {
            Err(left_out) => listing.left_out.push(left_out),
            Ok(tool) => {
                if listing.tools.contains_key(&tool.raw) {
                    listing.left_out.push(LeftOut { name: tool.raw, why: "it is listed twice".to_owned() });
                } else {
                    listing.tools.insert(tool.raw.clone(), Arc::new(tool));
                }
            }
        }
    }
    listing
}
