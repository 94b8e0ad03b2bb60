//! The processes of one gateway: a few, started when needed, used in turn.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use toolyard_protocol::limits::{SANDBOX_INPUT_BYTES, SANDBOX_QUEUE};

use super::WORKER;
use super::error::SandboxError;
use super::host::Host;
use super::job::{Answer, Job};
use super::keeper::{self, Wishes};
use super::process::Process;
use super::sitting::{Script, Sitting};
use super::wire::{Order, Task};

/// Most processes that a pool has unless it is told otherwise.
const PLACES_MAX: usize = 8;

/// How the processes are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What is started as a sandbox process.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// How many processes there are at most.
    pub places: usize,
    /// How many sittings keep their process between two calls.
    pub sittings: usize,
    /// How many calls may wait for a free process.
    pub queue: usize,
    /// How long a process may be without work before it is stopped.
    pub idle: Duration,
}

impl Settings {
    /// Processes of the program that runs now, as many as it has cores, at most eight.
    pub fn this_program() -> Self {
        // On Linux this is the very program that runs, even if its file was
        // replaced since by a newer one.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().unwrap_or_else(|_| PathBuf::from("toolyard"))
        };
        Self::program(program).with_argument(WORKER)
    }

    /// Processes of another program, which calls [`super::worker::main`].
    pub fn program(program: impl Into<PathBuf>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            program: program.into(),
            arguments: Vec::new(),
            places: cores.clamp(2, PLACES_MAX),
            sittings: 2 * cores.clamp(2, PLACES_MAX),
            queue: SANDBOX_QUEUE,
            idle: Duration::from_secs(60),
        }
    }

    fn with_argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

/// Runs code that is not trusted. Clones share their processes, which end when
/// the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Pool>);

#[derive(Debug)]
pub(super) struct Pool {
    pub(super) settings: Settings,
    places: Semaphore,
    waiting: AtomicUsize,
    idle: Mutex<VecDeque<Process>>,
    /// Sittings between two calls, the one that was called last behind the others.
    parked: Mutex<VecDeque<(u64, Process)>>,
    last_sitting: AtomicU64,
    wishes: Wishes,
}

impl Sandbox {
    /// Starts nothing yet: the first call starts the first process.
    pub fn new(settings: Settings) -> Self {
        let places = settings.places.max(1);
        let (wishes, queue) = keeper::queue(places);
        let pool = Arc::new(Pool {
            settings,
            places: Semaphore::new(places),
            waiting: AtomicUsize::new(0),
            idle: Mutex::default(),
            parked: Mutex::default(),
            last_sitting: AtomicU64::new(0),
            wishes,
        });
        // Without the thread every wish fails with a clear text, and so does each call.
        let _ = keeper::keep(Arc::downgrade(&pool), queue);
        Self(pool)
    }

    /// Runs a job to its end. Time in the queue does not count against its limit.
    /// Dropping the future kills the process that runs the job.
    pub async fn call(&self, job: Job) -> Result<Answer, SandboxError> {
        self.run(job, None).await
    }

    /// The same for code that may ask the gateway.
    pub async fn call_with(&self, job: Job, host: &dyn Host) -> Result<Answer, SandboxError> {
        self.run(job, Some(host)).await
    }

    /// Functions that share a runtime. Nothing starts before the first call.
    pub fn sitting(&self, script: Script) -> Result<Sitting, SandboxError> {
        let id = self.0.last_sitting.fetch_add(1, Ordering::Relaxed);
        Sitting::new(self.0.clone(), id, script)
    }

    /// The ids of the processes that wait for work.
    pub fn idle_processes(&self) -> Vec<u32> {
        self.0.idle().iter().filter_map(Process::id).collect()
    }

    async fn run(&self, job: Job, host: Option<&dyn Host>) -> Result<Answer, SandboxError> {
        let limits = job.limits;
        let order = order(job, host.is_some())?;
        let pool = &self.0;
        let _place = pool.place().await?;
        let mut process = pool.take().await?;
        let (answer, keeps) = process.run(&order, &limits, host).await;
        if keeps {
            pool.give_back(process);
        }
        answer
    }
}

impl Pool {
    pub(super) async fn place(&self) -> Result<SemaphorePermit<'_>, SandboxError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = Waiting::enter(&self.waiting, self.settings.queue)?;
        let closed = |_| SandboxError::Unavailable { why: "the sandbox is closed".to_owned() };
        self.places.acquire().await.map_err(closed)
    }

    /// A process that stands ready: the one that has waited longest, or a new one.
    pub(super) async fn take(&self) -> Result<Process, SandboxError> {
        while let Some(mut process) = self.pop() {
            // One that ended while it was idle is no fault of this call.
            if process.is_alive() && process.ready().await.is_ok() {
                return Ok(process);
            }
        }
        let unavailable = |error: std::io::Error| SandboxError::Unavailable { why: error.to_string() };
        let mut process = keeper::wish(&self.wishes).await.map_err(unavailable)?;
        process.ready().await?;
        Ok(process)
    }

    fn give_back(&self, mut process: Process) {
        process.idle_since = std::time::Instant::now();
        self.idle().push_back(process);
    }

    /// Stops the processes that have had no work for long.
    pub(super) fn dismiss_idle(&self) {
        self.idle().retain(|process| process.idle_since.elapsed() < self.settings.idle);
        self.parked().retain(|(_, process)| process.idle_since.elapsed() < self.settings.idle);
    }

    /// The process of a sitting, if it still waits for the next call.
    pub(super) fn resume(&self, sitting: u64) -> Option<Process> {
        let mut parked = self.parked();
        let at = parked.iter().position(|(id, _)| *id == sitting)?;
        parked.remove(at).map(|(_, process)| process)
    }

    pub(super) fn keeps(&self, sitting: u64) -> bool {
        self.parked().iter().any(|(id, _)| *id == sitting)
    }

    /// Keeps the process of a sitting for its next call. When too many wait, the
    /// one that was called longest ago loses its runtime.
    pub(super) fn park(&self, sitting: u64, mut process: Process) {
        process.idle_since = std::time::Instant::now();
        let mut parked = self.parked();
        parked.push_back((sitting, process));
        if parked.len() > self.settings.sittings {
            parked.pop_front();
        }
    }

    /// A sitting is over: its process is free for other work.
    pub(super) fn leave(&self, sitting: u64) {
        let Some(mut process) = self.resume(sitting) else { return };
        process.sits = true;
        if self.idle().len() < self.settings.places {
            self.give_back(process);
        }
    }

    fn parked(&self) -> MutexGuard<'_, VecDeque<(u64, Process)>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Process> {
        self.idle().pop_front()
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize, limit: usize) -> Result<Self, SandboxError> {
        let waiting = Self(count);
        if count.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(SandboxError::Busy { limit });
        }
        Ok(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The job as it travels. What can be refused is refused before a process is bothered.
fn order(job: Job, host: bool) -> Result<Order, SandboxError> {
    let Job { form, code, prelude, arguments, finite, limits } = job;
    let (names, values): (Vec<_>, Vec<_>) = arguments.into_iter().unzip();
    if let Some(name) = names.iter().find(|name| !super::worker::is_name(name)) {
        return Err(SandboxError::BadName { name: name.clone() });
    }
    let values = serde_json::value::to_raw_value(&values)
        .map_err(|error| SandboxError::NotJson { message: error.to_string() })?;
    let bytes = code.len() + values.get().len() + names.iter().map(String::len).sum::<usize>();
    let limit_bytes = SANDBOX_INPUT_BYTES;
    if bytes > limit_bytes {
        return Err(SandboxError::InputTooLarge { bytes, limit_bytes });
    }
    let prelude = prelude.map(str::to_owned);
    Ok(Order::Run(Task { form, code, prelude, names, values, finite, host, limits }))
}
