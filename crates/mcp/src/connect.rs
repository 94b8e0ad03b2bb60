//! From settings to a connection: the right wire, the right era, within the
//! time that a start may take.

use std::sync::Arc;

use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use toolyard_egress::Door;
use toolyard_protocol::limits;

use crate::fault::Fault;
use crate::flight::Flights;
use crate::handler::Handler;
use crate::settings::{Era, Launch, Program, Remote, ServerSettings};
use crate::wire::http::{Bearer, DoorClient};
use crate::wire::last_words::LastWords;
use crate::wire::pending::Pending;
use crate::wire::stdio::Pipe;

/// A server that answers.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, Handler>,
    pub(crate) live: Live,
}

/// What a call needs of a connection.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) changed: Arc<Notify>,
    pub(crate) era: Era,
    pub(crate) version: String,
    /// The program's own name and version.
    pub(crate) program: Option<(String, String)>,
    pub(crate) announces_changes: bool,
}

/// What connecting needs beside the settings.
pub(crate) struct Way<'a> {
    pub(crate) door: &'a Door,
    pub(crate) bearer: Option<Arc<dyn Bearer>>,
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) words: LastWords,
    pub(crate) era: Option<Era>,
}

/// Connects within the settings' time.
pub(crate) async fn connect(settings: &ServerSettings, way: &Way<'_>) -> Result<Connected, Fault> {
    let started = async {
        match &settings.launch {
            Launch::Stdio(program) => by_stdio(settings, program, way).await,
            Launch::Http(remote) => by_http(settings, remote, way).await,
        }
    };
    match tokio::time::timeout(settings.start, Box::pin(started)).await {
        Ok(connected) => connected,
        Err(_) => Err(Fault::passing(format!("it did not start within {:?}", settings.start))
            .with_last_words(&way.words.text())),
    }
}

fn mode(era: Option<Era>) -> ClientLifecycleMode {
    let modern = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Some(Era::Legacy) => ClientLifecycleMode::Initialize,
        Some(Era::Modern) => ClientLifecycleMode::Discover { preferred_versions: modern },
        None => ClientLifecycleMode::Auto {
            preferred_versions: modern,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    }
}

fn handler(settings: &ServerSettings) -> Handler {
    Handler { server: settings.name.clone(), flights: Arc::default(), changed: Arc::default() }
}

async fn by_stdio(settings: &ServerSettings, program: &Program, way: &Way<'_>) -> Result<Connected, Fault> {
    let first = start_program(settings, program, way, way.era).await;
    match first {
        // A server of the older era may die of a request that it does not know.
        Err((Some(ClientInitializeError::ConnectionClosed(_)), _)) if way.era.is_none() => {
            start_program(settings, program, way, Some(Era::Legacy)).await.map_err(|(_, fault)| fault)
        }
        other => other.map_err(|(_, fault)| fault),
    }
}

type Refused = (Option<ClientInitializeError>, Fault);

async fn start_program(
    settings: &ServerSettings,
    program: &Program,
    way: &Way<'_>,
    era: Option<Era>,
) -> Result<Connected, Refused> {
    let pending = Arc::new(Pending::default());
    let pipe = Pipe::open(program, Arc::clone(&pending), way.words.clone(), way.tasks)
        .map_err(|fault| (None, fault))?;
    let handler = handler(settings);
    match handler.clone().serve_with_lifecycle(pipe, mode(era)).await {
        Ok(service) => Ok(connected(service, handler, pending)),
        Err(e) => {
            // The words come a moment after the end.
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let text = match &e {
                ClientInitializeError::ConnectionClosed(_) => {
                    "the program ended before it was ready".to_owned()
                }
                other => format!("the start failed: {}", short(other)),
            };
            let fault = Fault::passing(text).with_last_words(&way.words.text());
            Err((Some(e), fault))
        }
    }
}

async fn by_http(settings: &ServerSettings, remote: &Remote, way: &Way<'_>) -> Result<Connected, Fault> {
    let pending = Arc::new(Pending::with_read_lists());
    let client = DoorClient::new(way.door.clone(), remote, Arc::clone(&pending), way.bearer.clone());
    // The client knows the address; what rmcp holds is never used, and shows
    // no path or query in rmcp's own logs.
    let config = StreamableHttpClientTransportConfig::with_uri(remote.target.origin())
        .max_sse_event_size(limits::MCP_MESSAGE_BYTES);
    let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
    let handler = handler(settings);
    match handler.clone().serve_with_lifecycle(transport, mode(way.era)).await {
        Ok(service) => {
            client.stream_is_open().await;
            Ok(connected(service, handler, pending))
        }
        Err(e) => Err(pending
            .last_fault()
            .unwrap_or_else(|| Fault::passing(format!("the start failed: {}", short(&e))))),
    }
}

fn connected(
    service: RunningService<RoleClient, Handler>,
    handler: Handler,
    pending: Arc<Pending>,
) -> Connected {
    let peer = service.peer().clone();
    let info = peer.peer_info();
    let version = info.as_ref().map_or_else(String::new, |info| info.protocol_version.to_string());
    let modern = info.as_ref().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28);
    let tools = info.as_ref().and_then(|info| info.capabilities.tools.clone());
    let program = info
        .as_ref()
        .and_then(|info| info.server_info.as_ref())
        .map(|server| (clean(&server.name), clean(&server.version)));
    let live = Live {
        peer,
        pending,
        flights: handler.flights,
        changed: handler.changed,
        era: if modern { Era::Modern } else { Era::Legacy },
        version,
        program,
        announces_changes: tools.is_some_and(|tools| tools.list_changed == Some(true)),
    };
    Connected { service, live }
}

fn clean(text: &str) -> String {
    toolyard_schema::clean(text, 128).text
}

/// An error of the handshake in one short line.
fn short(error: &ClientInitializeError) -> String {
    let text = match error {
        ClientInitializeError::JsonRpcError(e) => format!("error {}: {}", e.code.0, e.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return short(fallback),
        other => other.to_string(),
    };
    toolyard_schema::clean(&text, 300).text
}
