//! What became of calls, by call id, so that a crash between doing and posting
//! does not do it twice.
//!
//! A call is written down before it runs, when it ends and when the gateway
//! has its outcome. A call that began and has no end is *unknown*: it runs
//! again only if its tool says that a repeat does no harm.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::{CallId, ClientId};

/// What a tool answered, or why it did not.
pub type Outcome = Result<Value, String>;

/// A file that has nothing open is emptied from this size on.
const EMPTY_FROM: u64 = 1 << 20;

/// Why outcomes cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the journal {} is used by another process", .0.display())]
    Busy(PathBuf),
    #[error("line {line} of the journal {} cannot be read", path.display())]
    Broken { path: PathBuf, line: usize },
    #[error("the journal {} does not work: {why}", path.display())]
    File {
        path: PathBuf,
        #[source]
        why: std::io::Error,
    },
}

/// How a call stands before it is executed.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// Nobody has tried it: run it.
    Fresh,
    /// A former process began it and nobody knows the end.
    Unknown,
    /// It was done: post this.
    Ended(Outcome),
    /// Another task of this process is at it.
    Running,
}

#[derive(Debug, Clone)]
enum Known {
    Started,
    Ended(Outcome),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state")]
enum Line {
    /// Whose journal it is: after a restart its claims are its own.
    Client {
        client: ClientId,
    },
    Started {
        call: CallId,
    },
    Ended {
        call: CallId,
        outcome: Stored,
    },
    Posted {
        call: CallId,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stored {
    Ok(Value),
    Error(String),
}

#[derive(Debug, Default)]
struct Book {
    known: HashMap<CallId, Known>,
    /// Calls that this process is at.
    running: HashSet<CallId>,
    file: Option<(PathBuf, File)>,
    client: Option<ClientId>,
}

/// Outcomes by call id: in memory, or in a file that survives the process.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    book: Arc<Mutex<Book>>,
}

impl Journal {
    /// Forgets with the process.
    pub fn memory() -> Self {
        Self::default()
    }

    /// Keeps outcomes in a file. One process uses it at a time.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let path = path.as_ref().to_path_buf();
        let fault = |why| JournalError::File { path: path.clone(), why };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // Results of tools may be private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(fault)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(JournalError::Busy(path)),
            Err(std::fs::TryLockError::Error(why)) => return Err(fault(why)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fault)?;
        let (known, client) = read(&path, &text)?;
        // A line that a crash cut off is void; what follows must not join it.
        if text.last().is_some_and(|byte| *byte != b'\n') {
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            file.set_len(whole as u64).map_err(fault)?;
        }
        let mut book = Book { known, running: HashSet::new(), file: Some((path, file)), client };
        if book.client.is_none() {
            book.sign(ClientId::mint())?;
        }
        Ok(Self { book: Arc::new(Mutex::new(book)) })
    }

    /// The program that this file belongs to.
    pub(crate) fn client(&self) -> Option<ClientId> {
        self.book().client.clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks how a call stands, and writes down that it begins if it may.
    pub async fn begin(&self, call: &CallId, repeats_safely: bool) -> Result<Begun, JournalError> {
        let call = call.clone();
        self.blocking(move |book| {
            if book.running.contains(&call) {
                return Ok(Begun::Running);
            }
            let begun = match book.known.get(&call) {
                Some(Known::Ended(outcome)) => Begun::Ended(outcome.clone()),
                Some(Known::Started) if !repeats_safely => Begun::Unknown,
                Some(Known::Started) | None => {
                    book.write(&Line::Started { call: call.clone() })?;
                    book.known.insert(call.clone(), Known::Started);
                    Begun::Fresh
                }
            };
            book.running.insert(call);
            Ok(begun)
        })
        .await
    }

    /// Writes down how a call ended, before anybody is told.
    pub async fn end(&self, call: &CallId, outcome: &Outcome) -> Result<(), JournalError> {
        let (call, outcome) = (call.clone(), outcome.clone());
        self.blocking(move |book| {
            let stored = match &outcome {
                Ok(value) => Stored::Ok(value.clone()),
                Err(text) => Stored::Error(text.clone()),
            };
            book.write(&Line::Ended { call: call.clone(), outcome: stored })?;
            book.known.insert(call, Known::Ended(outcome));
            Ok(())
        })
        .await
    }

    /// The gateway has the outcome, or will never take it: forget the call.
    pub async fn forget(&self, call: &CallId) -> Result<(), JournalError> {
        let call = call.clone();
        self.blocking(move |book| {
            book.running.remove(&call);
            if book.known.remove(&call).is_some() {
                book.write(&Line::Posted { call })?;
            }
            book.empty_if_done()
        })
        .await
    }

    /// This process gave up on a call; what is known of it stays.
    pub(crate) fn leave(&self, call: &CallId) {
        self.book().running.remove(call);
    }

    /// Syncing a file takes a while: not on the threads of others.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Book) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        if self.book().file.is_none() {
            return work(&mut self.book());
        }
        let journal = self.clone();
        match tokio::task::spawn_blocking(move || work(&mut journal.book())).await {
            Ok(done) => done,
            Err(error) => Err(JournalError::File { path: PathBuf::new(), why: std::io::Error::other(error) }),
        }
    }
}

impl Book {
    fn write(&mut self, line: &Line) -> Result<(), JournalError> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let mut text = serde_json::to_string(line).unwrap_or_default();
        text.push('\n');
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|why| JournalError::File { path: path.clone(), why })
    }

    fn sign(&mut self, client: ClientId) -> Result<(), JournalError> {
        self.write(&Line::Client { client: client.clone() })?;
        self.client = Some(client);
        Ok(())
    }

    fn empty_if_done(&mut self) -> Result<(), JournalError> {
        let done = self.known.is_empty();
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let size = file.metadata().map_or(0, |about| about.len());
        if !done || size < EMPTY_FROM {
            return Ok(());
        }
        let emptied = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)).map(|_| ()));
        emptied.map_err(|why| JournalError::File { path: path.clone(), why })?;
        match self.client.clone() {
            Some(client) => self.sign(client),
            None => Ok(()),
        }
    }
}

/// Calls that a former process left open. A last line without an end is the
/// one that was being written when it stopped.
fn read(path: &Path, bytes: &[u8]) -> Result<(HashMap<CallId, Known>, Option<ClientId>), JournalError> {
    let (mut known, mut owner) = (HashMap::new(), None);
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for (number, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let broken = |_| JournalError::Broken { path: path.to_path_buf(), line: number + 1 };
        match serde_json::from_slice(line).map_err(broken)? {
            Line::Client { client } => {
                owner = Some(client);
                None
            }
            Line::Started { call } => known.insert(call, Known::Started),
            Line::Ended { call, outcome: Stored::Ok(value) } => known.insert(call, Known::Ended(Ok(value))),
            Line::Ended { call, outcome: Stored::Error(text) } => known.insert(call, Known::Ended(Err(text))),
            Line::Posted { call } => known.remove(&call),
        };
    }
    Ok((known, owner))
}
