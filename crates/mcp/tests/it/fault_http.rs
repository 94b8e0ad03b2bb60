//! The HTTP fault server as a process. The tests of other crates use this file too.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// It ends with its input.
pub(crate) struct FaultServer {
    child: Child,
    pub(crate) port: u16,
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl FaultServer {
    /// In a mode of the script, at this port or at a free one (0).
    pub(crate) fn start(mode: &str, port: u16) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/fixtures/fault_http.py");
        let mut child = Command::new(python())
            .args(["-u", script, mode, &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// The Python behind `python3`, which may be a script that adds variables.
pub(crate) fn python() -> String {
    static FOUND: OnceLock<String> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let out = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let out = out.expect("python3 is needed for the fault server").stdout;
        String::from_utf8(out).unwrap().trim().to_owned()
    });
    found.clone()
}
