//! SQLite: one writer thread with group commit, and a few connections that read.
//!
//! A write that is refused is taken back alone (see [`Frame`]), so a conflict
//! fails only itself. Callers hear of success after COMMIT, never before.
//!
//! A read runs where it is asked for. In WAL mode it never waits for the
//! writer, and it is bounded by its limit; a hop to another thread and back
//! costs more than the read itself (decision 0006).

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{Semaphore, mpsc, oneshot};
use toolyard_protocol::Timestamp;

use super::frame::{Frame, run};
use crate::clock::Clock;
use crate::error::{OpenError, StoreError};
use crate::feed::Feed;
use crate::tx::{Touched, Tx};

/// The database, in the data folder.
const FILE: &str = "toolyard.db";
/// Writes in one group at most.
const GROUP: usize = 256;
/// How long a group waits for more, if the last one was not alone either. A commit
/// costs the processor nearly as much for one write as for ten.
const LINGER: Duration = Duration::from_micros(300);
/// Writes that wait for the writer before callers do.
const QUEUE: usize = 1024;
/// Reads at once. A read does not wait for anything while it runs, so there
/// are never more than the runtime has threads.
const READERS: usize = 4;

/// A write that ran inside the group and waits for the commit.
struct Ran {
    /// It was not refused.
    wrote: bool,
    /// It failed when it had settled, and took its group with it.
    dragged: bool,
    touched: Vec<Touched>,
    reply: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

type Job = Box<dyn FnOnce(&mut Connection, Frame, Timestamp) -> Ran + Send>;

#[derive(Debug)]
pub(crate) struct Sqlite {
    writer: mpsc::Sender<Job>,
    writing: JoinHandle<()>,
    /// Connections that nobody reads with; `free` counts them.
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
    clock: Arc<dyn Clock>,
    /// Held as long as the database is open; the system frees it with the process.
    _lock: File,
}

impl Sqlite {
    /// Opens `<folder>/toolyard.db` and takes the folder's lock.
    pub(crate) fn open(folder: &Path, clock: Arc<dyn Clock>, feed: Feed) -> Result<Self, OpenError> {
        let lock = lock_folder(folder)?;
        let path = folder.join(FILE);
        let open = || connect(&path);
        let mut first = open()?;
        crate::migrate::sqlite(&mut first)?;
        crate::grants::look(&first).map_err(failed(&path))?;
        let clock = crate::steady::steady(clock, &first).map_err(failed(&path))?;
        let (writer, writing) = spawn_writer(first, clock.clone(), feed)?;
        let idle = (0..READERS).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
        let free = Semaphore::new(idle.len());
        Ok(Self { writer, writing, idle: Mutex::new(idle), free, clock, _lock: lock })
    }

    pub(crate) async fn write<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel::<Result<T, E>>();
        let job: Job = Box::new(move |conn, frame, now| {
            let (result, dragged, touched) = run_in(frame, conn, now, op);
            let wrote = result.is_ok();
            let reply = Box::new(move |committed: Result<(), StoreError>| {
                let whole = match committed {
                    Ok(()) => result,
                    // The others are to try again; this one would only fail again.
                    Err(_) if dragged => result,
                    // A refusal counts no more than a success: it may rest on what a
                    // neighbour wrote, and that is lost too.
                    Err(lost) => Err(E::from(lost)),
                };
                let _ = answer.send(whole);
            });
            Ran { wrote, dragged, touched, reply }
        });
        self.writer.send(job).await.map_err(|_| gone())?;
        answered.await.map_err(|_| not_run())?
    }

    pub(crate) async fn read<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let _turn = self.free.acquire().await.map_err(|_| gone())?;
        let mut conn = self.reader().ok_or_else(gone)?;
        let now = self.clock.now();
        // One snapshot for all statements of the reading. A panic in one must
        // not cost the others their connection.
        let read = std::panic::catch_unwind(AssertUnwindSafe(|| {
            run(&conn, "BEGIN").map_err(|e| E::from(e.into()))?;
            poll_once(op(&mut Tx::sqlite(&mut conn, now, Frame::Whole)))
        }));
        let ended = run(&conn, "COMMIT");
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        let value = read.unwrap_or_else(|_| Err(E::from(not_run())))?;
        ended.map_err(|e| E::from(e.into()))?;
        Ok(value)
    }

    fn reader(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Lets queued writes finish, then closes the files.
    pub(crate) async fn close(self) {
        let Self { writer, writing, idle, .. } = self;
        drop(writer);
        drop(idle);
        let _ = tokio::task::spawn_blocking(move || writing.join()).await;
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable("the database is closed".into())
}

fn not_run() -> StoreError {
    StoreError::Unavailable("the operation did not come to its end".into())
}

/// Whether a data folder has a database. Makes none.
pub fn is_kept(folder: &Path) -> bool {
    folder.join(FILE).exists()
}

/// Takes a data folder for this process; it is free again when the file is
/// dropped, or the process ends in any way. A new folder is its owner's alone.
pub fn lock_folder(folder: &Path) -> Result<File, OpenError> {
    let name = || folder.display().to_string();
    let unusable = |e: std::io::Error| OpenError::Folder { folder: name(), why: e.to_string() };
    create_private(folder).map_err(unusable)?;
    let lock = File::create(folder.join("lock")).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::Locked { folder: name() }),
        Err(std::fs::TryLockError::Error(e)) => Err(unusable(e)),
    }
}

fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// An empty file, which the copy of a database may fill.
fn create_private_file(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path).map(drop)
}

#[expect(clippy::disallowed_methods, reason = "the one place that opens SQLite")]
fn connect(path: &Path) -> Result<Connection, OpenError> {
    let conn = Connection::open(path).map_err(failed(path))?;
    conn.busy_timeout(Duration::from_secs(5)).map_err(failed(path))?;
    conn.set_prepared_statement_cache_capacity(256);
    // Plans never depend on bound values. Without this SQLite compiles a cached
    // statement anew whenever a LIMIT or a bound differs from the last one.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failed(path))?;
    // FULL: an acknowledged event survives a power cut. A longer log (16 MB) before
    // its pages are carried home: the same page is then carried less often.
    conn.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=4000;",
    )
    .map_err(failed(path))?;
    Ok(conn)
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> OpenError {
    move |e| OpenError::Database { what: path.display().to_string(), why: e.to_string() }
}

/// Copies the database of a folder into a new file, also while a gateway
/// writes to it: the copy is the state of one moment. Answers its size.
#[expect(clippy::disallowed_methods, reason = "a backup reads beside the gateway, on its own connection")]
pub fn back_up(folder: &Path, into: &Path) -> Result<u64, OpenError> {
    let path = folder.join(FILE);
    let failed = |why: String| OpenError::Database { what: path.display().to_string(), why };
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&path, flags).map_err(|e| failed(e.to_string()))?;
    conn.busy_timeout(Duration::from_secs(30)).map_err(|e| failed(e.to_string()))?;
    // It holds every conversation: it is its owner's alone.
    let unwritable = |e: std::io::Error| OpenError::Unwritable { file: into.display().to_string(), why: e };
    create_private_file(into).map_err(unwritable)?;
    let target = into.to_str().ok_or_else(|| failed("the file's name is not UTF-8".to_owned()))?;
    conn.execute("VACUUM INTO ?1", [target]).map_err(|e| failed(e.to_string()))?;
    let file = File::open(into).and_then(|f| f.sync_all().map(|()| f)).map_err(|e| failed(e.to_string()))?;
    Ok(file.metadata().map_err(|e| failed(e.to_string()))?.len())
}

fn spawn_writer(
    mut conn: Connection,
    clock: Arc<dyn Clock>,
    feed: Feed,
) -> Result<(mpsc::Sender<Job>, JoinHandle<()>), OpenError> {
    let (send, mut jobs) = mpsc::channel::<Job>(QUEUE);
    let writing = std::thread::Builder::new().name("sqlite-write".to_owned()).spawn(move || {
        let mut group = Vec::with_capacity(GROUP);
        let mut last = 1;
        loop {
            // What a lost group did not come to is the next group.
            if group.is_empty() && jobs.blocking_recv_many(&mut group, GROUP) == 0 {
                return;
            }
            // Where several write at once, their neighbours are on the way.
            if last > 1 {
                std::thread::sleep(LINGER);
                while group.len() < GROUP
                    && let Ok(job) = jobs.try_recv()
                {
                    group.push(job);
                }
            }
            last = group.len();
            #[cfg(feature = "failpoints")]
            super::room::bound(&conn);
            commit_group(&mut conn, &mut group, clock.now(), &feed);
        }
    });
    let failed = |e: std::io::Error| OpenError::Database { what: "thread".to_owned(), why: e.to_string() };
    Ok((send, writing.map_err(failed)?))
}

fn commit_group(conn: &mut Connection, group: &mut Vec<Job>, now: Timestamp, feed: &Feed) {
    let mut ran = Vec::with_capacity(group.len());
    let mut waiting = std::mem::take(group).into_iter();
    let begun = run(conn, "BEGIN IMMEDIATE").map_err(StoreError::from);
    let outcome = begun.and_then(|()| {
        for job in waiting.by_ref() {
            let first = !ran.iter().any(|done: &Ran| done.wrote);
            let frame = if first { Frame::Whole } else { Frame::Unchanged };
            ran.push(job(conn, frame, now));
            crate::failpoint!("group.mid_savepoint");
            // SQLITE_FULL ends the whole transaction on its own, and so does a write that
            // failed when it had settled. What follows would then commit by itself although
            // its caller hears "failed".
            let dragged = ran.last().is_some_and(|done: &Ran| done.dragged);
            if dragged || conn.is_autocommit() {
                let why = if dragged {
                    "a write of the same group failed"
                } else {
                    "the database ended the transaction"
                };
                return Err(if dragged {
                    StoreError::Unavailable(why.into())
                } else {
                    StoreError::Full(why.into())
                });
            }
        }
        crate::failpoint::pass("group.before_commit")?;
        Ok(run(conn, "COMMIT")?)
    });
    match outcome {
        Ok(()) => {
            // An answer can be lost between here and its caller, news cannot.
            let lost = crate::failpoint::pass("group.after_commit").err().map(|e| e.to_string());
            for done in ran {
                feed.publish(&done.touched);
                let answer = lost.clone().map_or(Ok(()), |why| Err(StoreError::Unavailable(why.into())));
                (done.reply)(answer);
            }
        }
        Err(why) => {
            let _ = run(conn, "ROLLBACK");
            let text = why.to_string();
            let again = || match &why {
                StoreError::Full(_) => StoreError::Full(text.clone().into()),
                StoreError::Unavailable(_)
                | StoreError::Exists(_)
                | StoreError::Gone(_)
                | StoreError::Undecodable(_)
                | StoreError::Broken(_) => StoreError::Unavailable(text.clone().into()),
            };
            // The rest is tried again. If not even BEGIN worked nothing ran: then all are
            // dropped, and their callers hear "unavailable".
            if !ran.is_empty() {
                group.extend(waiting);
            }
            ran.into_iter().for_each(|done| (done.reply)(Err(again())));
        }
    }
}

/// Also says whether the group is lost.
fn run_in<T, E, F>(
    frame: Frame,
    conn: &mut Connection,
    now: Timestamp,
    op: F,
) -> (Result<T, E>, bool, Vec<Touched>)
where
    F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, E>>,
    E: From<StoreError>,
{
    let mut tx = Tx::sqlite(conn, now, frame);
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| {
        poll_once(op(&mut tx)).and_then(|value| tx.whole(value).map_err(E::from))
    }));
    let result =
        ran.unwrap_or_else(|_| Err(E::from(StoreError::broken("an operation on the database panicked"))));
    let (frame, touched) = tx.end();
    match result {
        Ok(value) => match frame.keep(conn) {
            Ok(()) => (Ok(value), false, touched),
            Err(e) => (Err(E::from(e.into())), frame.take_back(conn), Vec::new()),
        },
        Err(refused) => (Err(refused), frame.take_back(conn), Vec::new()),
    }
}

/// SQLite answers at once, so an operation on it is ready when it is first polled.
fn poll_once<T, E: From<StoreError>>(op: BoxFuture<'_, Result<T, E>>) -> Result<T, E> {
    op.now_or_never().unwrap_or_else(|| {
        Err(E::from(StoreError::broken("an operation waited for something outside the database")))
    })
}
