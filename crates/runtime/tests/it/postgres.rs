//! A fresh PostgreSQL database for a story: on the server that the environment
//! names, or on a private one that ends with this process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The URL of a new database.
pub(crate) fn database() -> String {
    let name = format!("turn_{}", uuid::Uuid::now_v7().simple());
    let made = Command::new("psql")
        .args([server(), "-qc", &format!("CREATE DATABASE {name}")])
        .stdin(Stdio::null())
        .status()
        .expect("psql comes with PostgreSQL");
    assert!(made.success(), "{name} is not made");
    let (server, _) = server().rsplit_once('/').expect("the URL names a database");
    format!("{server}/{name}")
}

fn server() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| std::env::var("TOOLYARD_TEST_POSTGRES_URL").unwrap_or_else(|_| start()))
}

fn start() -> String {
    static SERVER: OnceLock<Child> = OnceLock::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/with-postgres");
    let mut child = Command::new(script)
        .arg("--serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("scripts/with-postgres starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("url ").expect("a PostgreSQL server for the tests").to_owned();
    SERVER.set(child).expect("one server per process");
    url
}
