//! rmcp's transport over a program's input and output.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use toolyard_protocol::limits;

use super::last_words::LastWords;
use super::line::{Line, Lines, id_of};
use super::pending::{Pending, Spoilt, spoilt};
use super::process::Process;
use crate::fault::Fault;
use crate::settings::Program;

/// Messages that wait for a program that does not read. Senders then wait too.
const OUTBOX: usize = 64;

struct Outgoing {
    line: Vec<u8>,
    done: oneshot::Sender<io::Result<()>>,
}

/// A program as a transport. Dropping it kills the program and its group.
pub(crate) struct Pipe {
    outbox: Option<mpsc::Sender<Outgoing>>,
    lines: Lines<ChildStdout>,
    pending: Arc<Pending>,
    process: Option<Process>,
    /// The program has ended: its last lines may be read until then.
    over: Option<Instant>,
}

/// How long the last lines of an ended program are waited for.
const LAST_LINES: Duration = Duration::from_millis(200);

impl Pipe {
    pub(crate) fn open(
        program: &Program,
        pending: Arc<Pending>,
        words: LastWords,
        tasks: &TaskTracker,
    ) -> Result<Self, Fault> {
        let (process, ends) = Process::start(program)?;
        let (outbox, inbox) = mpsc::channel(OUTBOX);
        // Both end with the program's pipes.
        tasks.spawn(write(ends.input, inbox));
        tasks.spawn(words.listen(ends.errors));
        let lines = Lines::new(ends.output, limits::MCP_MESSAGE_BYTES);
        Ok(Self { outbox: Some(outbox), lines, pending, process: Some(process), over: None })
    }

    fn read(&self, bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
        let unreadable = || {
            let id = id_of(bytes)?;
            serde_json::from_value(spoilt(&id, Spoilt::Unreadable)).ok()
        };
        // Programs write other things to their output too; those are skipped.
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            return unreadable();
        };
        let is_answer = value.get("method").is_none();
        match serde_json::from_value(self.pending.wrap(value)) {
            Ok(message) => Some(message),
            Err(_) if is_answer => unreadable(),
            Err(_) => None,
        }
    }
}

async fn ended(process: &mut Option<Process>) {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}

async fn until(over: Option<Instant>) {
    match over {
        Some(over) => tokio::time::sleep_until(over.into()).await,
        None => std::future::pending().await,
    }
}

/// Writes whole lines, one after the other, until nobody sends any more.
async fn write(mut input: ChildStdin, mut inbox: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { line, done }) = inbox.recv().await {
        let written = async {
            input.write_all(&line).await?;
            input.flush().await
        };
        let _ = done.send(written.await);
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.pending.sent(&message);
        let pending = Arc::clone(&self.pending);
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.to_string()),
            ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Error(_) => None,
        };
        let outbox = self.outbox.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let (done, written) = oneshot::channel();
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let sent = async {
                let outbox = outbox.ok_or_else(closed)?;
                outbox.send(Outgoing { line, done }).await.map_err(|_| closed())?;
                written.await.map_err(|_| closed())?
            };
            let sent: io::Result<()> = sent.await;
            if let Err(e) = &sent {
                // Half a line is no request: the program cannot have obeyed it.
                pending.failed(id, Fault::never_sent(format!("the program does not read: {e}")));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = tokio::select! {
                biased;
                line = self.lines.next() => line?,
                () = ended(&mut self.process), if self.over.is_none() => {
                    self.over = Some(Instant::now() + LAST_LINES);
                    continue;
                }
                () = until(self.over) => return None,
            };
            let message = match line {
                Line::Whole(bytes) => self.read(&bytes),
                Line::TooLong(id) => {
                    id.and_then(|id| serde_json::from_value(spoilt(&id, Spoilt::TooLarge)).ok())
                }
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.outbox = None;
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
        Ok(())
    }
}
