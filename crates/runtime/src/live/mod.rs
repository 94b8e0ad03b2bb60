//! Programs that are connected and execute tools (row G48). The socket is the
//! edge's; here is who sits at which socket of this node, and what it holds.
//!
//! Nothing waits here: a call is a row of the ledger whether anybody is
//! connected or not. A connected program is offered calls ([`offers`]), one
//! program each, by a claim in the database, so several nodes agree. When a
//! connection goes, its claims go with its row.

mod offers;
pub(crate) mod present;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use toolyard_protocol::{
    ApiError, CallId, ClientId, ConnectionId, EntityId, ErrorCode, KeyKind, OutcomeKind, Principal, RunId,
    TenantId, Timestamp, ToolName, Viewer, WaitId, limits,
};
use toolyard_store::clients::{self, Client};
use toolyard_store::presences::{self, Presence};
use toolyard_store::waits::WaitRow;

use crate::refused::Refused;
use crate::runtime::Runtime;

pub(crate) use offers::run;

/// What a connected program is told. Its queue has room for every call that it
/// may hold and for their ends; what has no room is not sent: a call stays in
/// the ledger, an end is seen when the result is refused.
#[derive(Debug)]
pub enum LiveNews {
    /// Execute this.
    Call(Box<OfferedCall>),
    /// A call that it holds ended without it.
    Ended { run: RunId, call: CallId, tool: ToolName, outcome: Option<OutcomeKind> },
    /// The same client has connected again: this connection is over.
    Replaced,
}

/// A call for one program.
#[derive(Debug)]
pub struct OfferedCall {
    pub row: WaitRow,
    pub args: Option<Value>,
    /// Who looks at it.
    pub viewer: Viewer,
    pub claimed_until: Timestamp,
}

/// A call in the hands of a program.
type HeldCall = (RunId, CallId, ToolName);

/// Calls that a program is just answering.
#[derive(Debug)]
pub struct Answering(HashMap<WaitId, HeldCall>);

/// A socket of this node.
#[derive(Debug)]
struct Seat {
    tenant: TenantId,
    client: ClientId,
    /// None for a backend.
    entity: Option<EntityId>,
    tools: HashSet<ToolName>,
    outbox: mpsc::Sender<LiveNews>,
    /// What it was given and has not answered.
    held: HashMap<WaitId, HeldCall>,
    /// Who came first.
    order: u64,
}

/// The sockets of this node.
#[derive(Debug, Default)]
pub(crate) struct Live {
    seats: Mutex<HashMap<ConnectionId, Seat>>,
    /// Rows to remove: their sockets are gone.
    gone: Mutex<Vec<(TenantId, ConnectionId)>>,
    /// Somebody came, went or has room again.
    changed: Notify,
    next: AtomicU64,
}

/// A program's seat. Dropping it is leaving.
#[derive(Debug)]
pub struct Connected {
    runtime: Arc<Runtime>,
    tenant: TenantId,
    connection: ConnectionId,
    news: mpsc::Receiver<LiveNews>,
}

impl Connected {
    pub fn connection(&self) -> &ConnectionId {
        &self.connection
    }

    /// The next thing to tell the program. None once it has been replaced.
    pub async fn news(&mut self) -> Option<LiveNews> {
        self.news.recv().await
    }

    /// It answers these calls: it need not hear that they end, and there is
    /// room for others. If the answer is refused, give back what this gave.
    #[must_use]
    pub fn answering(&self, run: &RunId, calls: &[CallId]) -> Answering {
        let live = &self.runtime.live;
        let mut taken = HashMap::new();
        if let Some(seat) = live.seats().get_mut(&self.connection) {
            let answered = |(of, call, _): &HeldCall| of == run && calls.contains(call);
            let full = seat.held.len() >= limits::SOCKET_CALLS;
            taken = seat.held.extract_if(|_, held| answered(held)).collect();
            if full && !taken.is_empty() {
                live.changed.notify_one();
            }
        }
        Answering(taken)
    }

    /// The answer was refused: it holds the calls as before.
    pub fn keeps(&self, answering: Answering) {
        if let Some(seat) = self.runtime.live.seats().get_mut(&self.connection) {
            seat.held.extend(answering.0);
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let live = &self.runtime.live;
        live.seats().remove(&self.connection);
        live.gone().push((self.tenant.clone(), self.connection.clone()));
        live.changed.notify_one();
    }
}

impl Live {
    fn seats(&self) -> MutexGuard<'_, HashMap<ConnectionId, Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn gone(&self) -> MutexGuard<'_, Vec<(TenantId, ConnectionId)>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn is_idle(&self) -> bool {
        self.seats().is_empty() && self.gone().is_empty()
    }

    /// How many programs are connected to this node.
    fn len(&self) -> usize {
        self.seats().len()
    }

    fn check_room(&self, by: &Principal, most: usize) -> Result<(), ApiError> {
        let seats = self.seats();
        if seats.len() >= most {
            let text = format!("{most} programs are connected to this node: the limit is {most}");
            return Err(ApiError::limit(ErrorCode::RateLimited, most as u64, text));
        }
        let own = seats.values().filter(|s| s.tenant == by.tenant && s.entity == by.entity).count();
        let most = limits::SOCKETS_PER_USER;
        if by.kind == KeyKind::Public && own >= most {
            let text = format!("This user has {own} connected programs: the limit is {most}");
            return Err(ApiError::limit(ErrorCode::RateLimited, most as u64, text));
        }
        Ok(())
    }

    /// Older sockets of the same client on this node end.
    fn replace(&self, tenant: &TenantId, client: &ClientId) {
        self.seats().retain(|_, seat| {
            let same = seat.tenant == *tenant && seat.client == *client;
            if same {
                // Full or not, its sender goes with the seat.
                let _ = seat.outbox.try_send(LiveNews::Replaced);
            }
            !same
        });
    }
}

impl Runtime {
    /// Seats a connected program. Its newest connection is the one that counts.
    pub async fn connect(
        self: &Arc<Self>,
        by: &Principal,
        client: Client,
        tools: Vec<ToolName>,
    ) -> Result<Connected, ApiError> {
        let most = limits::SOCKET_TOOLS;
        if tools.len() > most {
            let text = format!("{} tools on one connection: the limit is {most}", tools.len());
            return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, text));
        }
        self.live.check_room(by, self.settings.client_sockets)?;
        let connection = ConnectionId::mint();
        let (tenant, id) = (by.tenant.clone(), client.id.clone());
        let presence = Presence {
            connection: connection.clone(),
            client: id.clone(),
            entity: client.entity.clone(),
            tools: tools.clone(),
        };
        let (of, owner, row) = (tenant.clone(), self.owner.clone(), presence);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let mut client = client;
                    client.last_seen = tx.now().await?;
                    if !clients::put_connected(tx, &of, &client).await? {
                        let text = "clientId: belongs to another entity";
                        return Err(Refused::Api(ApiError::new(ErrorCode::Conflict, text)));
                    }
                    presences::enter(tx, &of, &owner, &row).await?;
                    Ok(())
                })
            })
            .await?;
        self.live.replace(&tenant, &id);
        // Every held call once, every end of one once, and the farewell.
        let (outbox, news) = mpsc::channel(2 * limits::SOCKET_CALLS + 1);
        let seat = Seat {
            tenant: tenant.clone(),
            client: id,
            entity: by.entity.clone(),
            tools: tools.into_iter().collect(),
            outbox,
            held: HashMap::new(),
            order: self.live.next.fetch_add(1, Ordering::Relaxed),
        };
        self.live.seats().insert(connection.clone(), seat);
        self.live.changed.notify_one();
        Ok(Connected { runtime: self.clone(), tenant, connection, news })
    }

    /// How many programs are connected to this node.
    pub fn connected_programs(&self) -> usize {
        self.live.len()
    }
}
