//! Tells MCP clients that the tools or prompts of their agent have changed: its
//! configuration is another one, or an MCP server behind it has other tools.
//!
//! A change may come from another node or from a file, so the list is looked at
//! now and then. One look serves all sessions of a caller with an agent, and
//! nobody looks when no session is open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;
use toolyard_mcp::server::Change;
use toolyard_protocol::limits;

use super::desk::AgentDesk;
use super::library;

/// News that a slow listener may miss: the next one says the same.
const BACKLOG: usize = 4;

/// Who listens for news of which agent.
#[derive(Debug, Default)]
pub(crate) struct ToolNews {
    rooms: Mutex<HashMap<String, broadcast::Sender<Change>>>,
}

impl ToolNews {
    /// Listens with the other sessions of the same caller.
    pub(super) fn join(&self, desk: &AgentDesk) -> broadcast::Receiver<Change> {
        let owner = desk.owner();
        let mut rooms = self.rooms();
        if let Some(room) = rooms.get(&owner) {
            return room.subscribe();
        }
        let (room, first) = broadcast::channel(BACKLOG);
        rooms.insert(owner.clone(), room.clone());
        desk.app.tasks.spawn("mcp-news", look(Arc::new(desk.clone()), owner, room));
        first
    }

    /// Ends a look that nobody needs. The last one out closes the room.
    fn is_empty(&self, owner: &str, room: &broadcast::Sender<Change>) -> bool {
        let mut rooms = self.rooms();
        let empty = room.receiver_count() == 0;
        if empty {
            rooms.remove(owner);
        }
        empty
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Change>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn look(desk: Arc<AgentDesk>, owner: String, room: broadcast::Sender<Change>) {
    let app = desk.app.clone();
    let mut known = look_once(&desk).await;
    let mut ticks = tokio::time::interval(Duration::from_secs(limits::MCP_SERVER_LOOK_SECONDS));
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if app.mcp_news.is_empty(&owner, &room) {
            return;
        }
        // A database that is away, or an agent that is gone, is no other list.
        let Some(now) = look_once(&desk).await else { continue };
        if let Some((tools, prompts)) = &known {
            // Who has left meanwhile needs no news.
            if *tools != now.0 {
                let _ = room.send(Change::Tools);
            }
            if *prompts != now.1 {
                let _ = room.send(Change::Prompts);
            }
        }
        known = Some(now);
    }
}

/// The tools and the prompts, as they are listed now.
async fn look_once(desk: &AgentDesk) -> Option<(Value, Value)> {
    Some((desk.list().await.ok()?, library::prompts(desk).await.ok()?))
}
