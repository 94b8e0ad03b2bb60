//! One sandbox process as the gateway sees it: started, given a job, killed.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::BufReader;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{timeout, timeout_at};
use toolyard_protocol::limits::SANDBOX_INPUT_BYTES;

use super::error::SandboxError;
use super::host::Host;
use super::job::{Answer, Limits};
use super::pool::Settings;
use super::wire::{self, Done, Order, Report, Scene};

/// How much later than the code's own limit a process is killed. It covers the
/// way of an answer that was ready in time.
const GRACE: Duration = Duration::from_millis(100);
/// How long a process may take to come up, or to clear up after a call.
const READY: Duration = Duration::from_secs(10);
/// Room in a message for what stands around its values.
const AROUND: usize = 64 << 10;

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Since when it has nothing to do.
    pub(super) idle_since: Instant,
    /// It is in the middle of a sitting that nobody goes on with.
    pub(super) sits: bool,
}

impl Process {
    /// Starts one. The calling thread must live as long as the process may: the
    /// kernel kills the child when the thread that made it ends.
    pub(super) fn start(settings: &Settings) -> io::Result<Self> {
        let mut command = Command::new(&settings.program);
        command.args(&settings.arguments).current_dir("/");
        // The process sees nothing of the gateway's environment. With this value
        // the C library looks for no time zone file, and with the other one (in KiB) the
        // allocator sets aside less than the process may have: its limit counts that too.
        command.env_clear().env("TZ", "UTC0").env("MIMALLOC_ARENA_RESERVE", "65536");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok(Self { child, input, output: BufReader::new(output), idle_since: Instant::now(), sits: false })
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the process holds a fresh runtime.
    pub(super) async fn ready(&mut self) -> Result<(), SandboxError> {
        let unavailable = |why: String| SandboxError::Unavailable { why };
        if std::mem::take(&mut self.sits) {
            wire::send(&mut self.input, &Order::Leave).await.map_err(|e| unavailable(e.to_string()))?;
        }
        match timeout(READY, wire::receive(&mut self.output, AROUND)).await {
            Ok(Ok(Report::Ready)) => Ok(()),
            Ok(Ok(other)) => Err(unavailable(format!("it said {other:?} instead of being ready"))),
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(unavailable(format!("it ended at once ({})", self.end().await)))
            }
            Ok(Err(error)) => Err(unavailable(error.to_string())),
            Err(_) => Err(unavailable(format!("it was not ready within {} s", READY.as_secs()))),
        }
    }

    /// Runs a job. Says with the answer whether the process can take another.
    pub(super) async fn run(
        &mut self,
        order: &Order,
        limits: &Limits,
        host: Option<&dyn Host>,
    ) -> (Result<Answer, SandboxError>, bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(limits.time_ms) + GRACE;
        match timeout_at(deadline, self.converse(order, limits, host)).await {
            Ok(Ok(done)) => {
                let keeps = !done.retires;
                (answer(done), keeps)
            }
            Ok(Err(error)) if is_gone(&error) => (Err(SandboxError::Died { how: self.end().await }), false),
            Ok(Err(error)) => (Err(SandboxError::Died { how: error.to_string() }), false),
            Err(_) => {
                // Kill it here: dropping would do so too, but only later if the caller lingers.
                let _ = self.child.start_kill();
                (Err(SandboxError::Killed { limit_ms: limits.time_ms }), false)
            }
        }
    }

    /// Begins a sitting. Its calls come with [`Process::run`].
    pub(super) async fn sit(&mut self, scene: &Scene) -> Result<(), SandboxError> {
        let sent = wire::send(&mut self.input, &Order::Sit(scene.clone())).await;
        sent.map_err(|error| SandboxError::Unavailable { why: error.to_string() })
    }

    async fn converse(
        &mut self,
        order: &Order,
        limits: &Limits,
        host: Option<&dyn Host>,
    ) -> io::Result<Done> {
        wire::send(&mut self.input, order).await?;
        // A console can come to six times its size when every byte is escaped.
        let most = AROUND + 6 * limits.console_bytes + limits.result_bytes.max(SANDBOX_INPUT_BYTES);
        let mut asked = FuturesUnordered::new();
        loop {
            // A message is read to its end before anything else: reading is not
            // safe to break off, so questions are answered between messages.
            let report = {
                let mut reading = std::pin::pin!(wire::receive(&mut self.output, most));
                loop {
                    tokio::select! {
                        report = &mut reading => break report?,
                        Some((id, answer)) = asked.next(), if !asked.is_empty() => {
                            wire::send(&mut self.input, &Order::Told { id, answer }).await?;
                        }
                    }
                }
            };
            match (report, host) {
                (Report::Done(done), _) => return Ok(done),
                (Report::Asked { id, name, value }, Some(host)) => {
                    asked.push(async move { (id, told(host, &name, &value).await) });
                }
                (other, _) => return Err(io::Error::other(format!("it said {other:?} out of turn"))),
            }
        }
    }

    /// How it ended, for an error text.
    async fn end(&mut self) -> String {
        match timeout(Duration::from_secs(1), self.child.wait()).await {
            Ok(Ok(status)) => describe(status),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it closed its pipes".to_owned(),
        }
    }
}

async fn told(host: &dyn Host, name: &str, value: &RawValue) -> Result<Box<RawValue>, String> {
    let value = serde_json::from_str(value.get()).map_err(|error| error.to_string())?;
    let answer = host.ask(name, value).await?;
    serde_json::value::to_raw_value(&answer).map_err(|error| error.to_string())
}

fn answer(done: Done) -> Result<Answer, SandboxError> {
    let given = done.outcome?;
    let value: Value = serde_json::from_str(given.value.get())
        .map_err(|error| SandboxError::NotJson { message: error.to_string() })?;
    let took = Duration::from_micros(done.took_us);
    Ok(Answer { value, lost: given.lost, console: done.console, took })
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe)
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.to_string()
}
