//! Where steps are kept: nowhere, or in SQLite with one writer that commits in
//! groups. A caller goes on when its step is on the disk.

use std::path::Path;
use std::sync::mpsc;

use rusqlite::{Connection, params};
use tokio::sync::oneshot;

/// Steps that wait for the writer before callers do.
const QUEUE: usize = 1024;
/// Steps in one commit at most.
const GROUP: usize = 256;

/// One line of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub thread: String,
    /// The call that the thread's run waits for after this line.
    pub waits_for: Option<String>,
    /// The message as the model reads it.
    pub message: String,
}

struct Job {
    entries: Vec<Entry>,
    done: oneshot::Sender<()>,
}

/// The step is not stored, so nobody may hear of it.
#[derive(Debug, thiserror::Error)]
#[error("the step could not be stored")]
pub struct NotStored;

/// The way to the writer.
#[derive(Debug)]
pub struct Disk {
    writer: Option<mpsc::SyncSender<Job>>,
}

impl Disk {
    /// Keeps nothing.
    pub fn none() -> Self {
        Self { writer: None }
    }

    /// Opens a database and gives what an earlier process left in it.
    pub fn open(file: &Path) -> Result<(Self, Vec<Entry>), rusqlite::Error> {
        let conn = Connection::open(file)?;
        conn.execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;
             CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, thread TEXT NOT NULL, waits_for TEXT, message TEXT NOT NULL);",
        )?;
        let left = {
            let mut rows = conn.prepare("SELECT thread, waits_for, message FROM entries ORDER BY id")?;
            let entries = rows.query_map([], |row| {
                Ok(Entry { thread: row.get(0)?, waits_for: row.get(1)?, message: row.get(2)? })
            })?;
            entries.collect::<Result<Vec<_>, _>>()?
        };
        let (writer, jobs) = mpsc::sync_channel(QUEUE);
        std::thread::spawn(move || write(conn, &jobs));
        Ok((Self { writer: Some(writer) }, left))
    }

    /// Returns when the entries are on the disk.
    pub async fn commit(&self, entries: &[Entry]) -> Result<(), NotStored> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let (done, stored) = oneshot::channel();
        // The queue is longer than the rig has runs, so this does not block.
        writer.send(Job { entries: entries.to_vec(), done }).map_err(|_| NotStored)?;
        stored.await.map_err(|_| NotStored)
    }
}

/// The writer: takes what is there, commits it together, then answers all.
fn write(mut conn: Connection, jobs: &mpsc::Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(job) = jobs.try_recv()
        {
            group.push(job);
        }
        // On failure the answers are dropped and their callers hear of it.
        if store(&mut conn, &group).is_ok() {
            for job in group {
                let _ = job.done.send(());
            }
        }
    }
}

fn store(conn: &mut Connection, group: &[Job]) -> Result<(), rusqlite::Error> {
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    {
        let mut insert =
            tx.prepare_cached("INSERT INTO entries (thread, waits_for, message) VALUES (?1, ?2, ?3)")?;
        for entry in group.iter().flat_map(|job| &job.entries) {
            insert.execute(params![entry.thread, entry.waits_for, entry.message])?;
        }
    }
    tx.commit()
}
