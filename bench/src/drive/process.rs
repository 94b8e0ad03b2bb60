//! The processes of a measurement. Each one ends with its owner.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hyper::header::HeaderMap;
use rustix::process::{Pid, Signal, kill_process};

use super::DriveError;
use crate::http::Peer;

/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take to end.
const GOODBYE: Duration = Duration::from_secs(15);

/// A running server.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pub(super) address: SocketAddr,
    /// From its start to its first good answer.
    pub(super) ready_after: Duration,
}

/// A port of this machine that is free now.
pub(super) fn free_address() -> Result<SocketAddr, DriveError> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map_err(|e| DriveError::File("a free port".to_owned(), e))
}

impl Process {
    /// Starts a program and waits until it answers. `asks` is the path of its
    /// readiness; without one it is ready when it takes connections.
    pub(super) async fn start(
        mut command: Command,
        address: SocketAddr,
        asks: Option<&str>,
        log: PathBuf,
    ) -> Result<Self, DriveError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |e| DriveError::File(name.clone(), e);
        let out = File::create(&log).map_err(failed)?;
        let err = out.try_clone().map_err(failed)?;
        let began = Instant::now();
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().map_err(failed)?;
        let mut process = Self { child, address, ready_after: Duration::ZERO };
        while began.elapsed() < PATIENCE {
            if answers(address, asks).await {
                process.ready_after = began.elapsed();
                return Ok(process);
            }
            if process.child.try_wait().map_err(failed)?.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Err(DriveError::NotReady { name, tail: tail(&log) })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

async fn answers(address: SocketAddr, asks: Option<&str>) -> bool {
    let Some(path) = asks else { return tokio::net::TcpStream::connect(address).await.is_ok() };
    let peer = Peer::new(address, HeaderMap::new());
    match peer.get(path).await {
        Ok(answer) => answer.status.is_success() && answer.read_all().await.is_ok(),
        Err(_) => false,
    }
}

/// The end of a log.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

impl Drop for Process {
    /// Asks it to end, so that a build that counts what it runs can write that
    /// down. One that has ended by itself, or does not listen, is no trouble.
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let asked = Instant::now();
        while asked.elapsed() < GOODBYE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
