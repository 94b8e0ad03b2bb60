//! A private Redis of a test, on a port of its own. It ends with the test, also
//! if the test is killed. The tests of other crates use this file too.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct RedisServer {
    port: u16,
    server: Option<Child>,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        // Below the range from which the system takes the ports of outgoing connections.
        let seed = u64::from(std::process::id()) * 7919;
        for n in 0..50 {
            let port = 10_000 + u16::try_from((seed + n * 613) % 9_000).unwrap();
            if let Some(server) = started(port) {
                return Self { port, server: Some(server) };
            }
        }
        panic!("no Redis server for the tests: is the package redis-server installed (scripts/setup-tests)?");
    }

    /// An address where nobody listens yet.
    pub(crate) fn absent() -> Self {
        let mut redis = Self::start();
        redis.kill();
        redis
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    /// Starts again where it was.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let began = Instant::now();
        while self.server.is_none() {
            assert!(began.elapsed() < PATIENCE, "Redis does not start again");
            self.server = started(self.port);
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.server.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// None if the port is taken.
fn started(port: u16) -> Option<Child> {
    let settings = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"];
    // The server dies with the thread of the test, which is the one that starts it.
    let mut server = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "redis-server", "--port", &port.to_string()])
        .args(settings)
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("setpriv comes with util-linux");
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if server.try_wait().unwrap().is_some() {
            return None;
        }
        if is_there(port, server.id()) {
            return Some(server);
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let _ = server.kill();
    let _ = server.wait();
    None
}

/// Does this very server answer, and not another test's on the same port?
fn is_there(port: u16, pid: u32) -> bool {
    let Ok(mut line) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    line.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    if line.write_all(b"INFO server\r\nQUIT\r\n").is_err() {
        return false;
    }
    let mut said = String::new();
    let _ = line.read_to_string(&mut said);
    said.contains(&format!("process_id:{pid}\r\n"))
}
