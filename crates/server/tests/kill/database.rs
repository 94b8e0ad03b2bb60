//! A fresh database for each story.

use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Where the gateways of one story keep their data.
pub(crate) struct Database {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) url: Option<String>,
    name: Option<String>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), url: None, name: None }
    }

    pub(crate) fn postgres() -> Self {
        let name = format!("kill_{}", uuid::Uuid::now_v7().simple());
        sql(&format!("CREATE DATABASE {name}"));
        let (server, _) = server().rsplit_once('/').expect("the URL names a database");
        let url = format!("{server}/{name}");
        Self { folder: tempfile::tempdir().unwrap(), url: Some(url), name: Some(name) }
    }

    /// For another story: a copy of the folder. On PostgreSQL stories share
    /// the database, each with a space of its own, because making one per
    /// story takes longer than the story. The node's name stays behind: two
    /// that live at once under one name end each other's lives.
    pub(crate) fn copy(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let file = file.unwrap();
            if file.file_name() == "node" {
                continue;
            }
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        Self { folder, url: self.url.clone(), name: None }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            sql(&format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

fn sql(statement: &str) {
    let status = Command::new("psql")
        .args([server(), "-qc", statement])
        .stdin(Stdio::null())
        .status()
        .expect("psql comes with PostgreSQL");
    assert!(status.success(), "{statement}");
}

/// The tests' PostgreSQL: the one of the environment, or a private one that
/// ends with this process.
fn server() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| std::env::var("TOOLYARD_TEST_POSTGRES_URL").unwrap_or_else(|_| start()))
}

fn start() -> String {
    use std::io::BufRead;
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
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("url ").expect("a PostgreSQL server for the tests").to_owned();
    SERVER.set(child).expect("one server per process");
    url
}
