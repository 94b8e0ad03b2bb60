//! A fresh PostgreSQL database for a story.

use std::process::{Command, Stdio};

use crate::postgres_server::{url, url_of};

/// The URL of a new database.
pub(crate) fn database() -> String {
    let name = format!("turn_{}", uuid::Uuid::now_v7().simple());
    let made = Command::new("psql")
        .args([url(), "-qc", &format!("CREATE DATABASE {name}")])
        .stdin(Stdio::null())
        .status()
        .expect("psql comes with PostgreSQL");
    assert!(made.success(), "{name} is not made");
    url_of(&name)
}
