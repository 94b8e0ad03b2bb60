//! The PostgreSQL server of the tests: the one that the environment names, or
//! a private one that this process starts and that ends with it. The tests of
//! other crates use this file too.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The variable that `scripts/run-tests` sets, so that one server is enough
/// for all test processes.
const VARIABLE: &str = "TOOLYARD_TEST_POSTGRES_URL";

/// A superuser's URL.
pub(crate) fn url() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| std::env::var(VARIABLE).unwrap_or_else(|_| started()))
}

/// Starts a private server. It lives as long as its standard input is open:
/// the child is kept, so that is as long as this process.
fn started() -> String {
    static SERVER: OnceLock<Child> = OnceLock::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/with-postgres");
    let mut child = Command::new(script)
        .arg("--serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Not inherited: the server still cleans up when the test has ended,
        // and the runner would take that for a leak.
        .stderr(Stdio::piped())
        .spawn()
        .expect("scripts/with-postgres starts");
    let mut line = String::new();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    answers.read_line(&mut line).unwrap();
    let Some(url) = line.trim().strip_prefix("url ") else {
        let mut why = String::new();
        child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        panic!("no PostgreSQL server for the tests: {why}");
    };
    SERVER.set(child).expect("one server per process");
    url.to_owned()
}

/// The same server, another database.
pub(crate) fn url_of(database: &str) -> String {
    let (path, query) = match url().split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (url(), String::new()),
    };
    let (server, _) = path.rsplit_once('/').expect("the URL names a database");
    format!("{server}/{database}{query}")
}
