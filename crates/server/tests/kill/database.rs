//! A fresh database for each story.

use std::process::{Command, Stdio};

#[path = "../../../store/tests/it/server.rs"]
mod server;

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
        let url = Some(server::url_of(&name));
        Self { folder: tempfile::tempdir().unwrap(), url, name: Some(name) }
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

    /// What a query counts, beside the gateway that is at work there.
    pub(crate) fn number(&self, query: &str) -> i64 {
        match &self.url {
            Some(url) => psql(url, query)[0].parse().unwrap(),
            None => {
                let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
                let file = self.folder.path().join("toolyard.db");
                let db = rusqlite::Connection::open_with_flags(file, flags).unwrap();
                db.query_row(query, [], |row| row.get(0)).unwrap()
            }
        }
    }

    /// One of its own with the same in it. Nobody may be at work on this one.
    pub(crate) fn twin(&self) -> Self {
        let mut twin = self.copy();
        if let Some(from) = &self.name {
            let name = format!("kill_{}", uuid::Uuid::now_v7().simple());
            sql(&format!("CREATE DATABASE {name} TEMPLATE {from}"));
            (twin.url, twin.name) = (Some(server::url_of(&name)), Some(name));
        }
        twin
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            sql(&format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

/// What a query gives on a PostgreSQL, a line for each row.
pub(crate) fn psql(url: &str, statement: &str) -> Vec<String> {
    let mut psql = Command::new("psql");
    let done = psql.args([url, "-XAtqc", statement]).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn sql(statement: &str) {
    let status = Command::new("psql")
        .args([server::url(), "-qc", statement])
        .stdin(Stdio::null())
        .status()
        .expect("psql comes with PostgreSQL");
    assert!(status.success(), "{statement}");
}
