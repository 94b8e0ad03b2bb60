//! Finds the programs that the tests run: the gateway and the examples. They
//! are built only if a source is newer, so that a run of the whole workspace
//! builds nothing again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `target/debug`, where this test lies in `deps`.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_path_buf()
}

pub(crate) fn gateway() -> PathBuf {
    found(built().join("toolyard"), &["-p", "toolyard", "--bin", "toolyard"])
}

pub(crate) fn example(name: &str) -> PathBuf {
    let features = ["-p", "toolyard-client", "--features", "sqlite", "--example", name];
    found(built().join("examples").join(name), &features)
}

fn found(program: PathBuf, build: &[&str]) -> PathBuf {
    if is_fresh(&program) {
        return program;
    }
    // One process builds, the others wait for it and then look again.
    let lock = std::fs::File::create(built().join(".sdk-tests-build")).unwrap();
    lock.lock().unwrap();
    if !is_fresh(&program) {
        let target = built().parent().unwrap().to_path_buf();
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = Command::new(cargo);
        command.arg("build").args(build).current_dir(root()).env("CARGO_TARGET_DIR", target);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // What is up to date for cargo is so for us.
        let touched = std::fs::File::options().append(true).open(&program).unwrap();
        let _ = touched.set_modified(SystemTime::now());
    }
    program
}

fn is_fresh(program: &Path) -> bool {
    let Ok(made) = program.metadata().and_then(|about| about.modified()) else { return false };
    let newest =
        ["crates", "examples", "Cargo.toml", "Cargo.lock"].iter().map(|name| newest(&root().join(name)));
    newest.max().is_none_or(|newest| newest <= made)
}

/// When something below was changed last. Tests are no part of a program.
fn newest(path: &Path) -> SystemTime {
    let Ok(about) = path.metadata() else { return SystemTime::UNIX_EPOCH };
    if !about.is_dir() {
        return about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    }
    let entries = std::fs::read_dir(path).unwrap().flatten();
    let entries = entries.filter(|entry| !matches!(entry.file_name().to_str(), Some("tests" | "fixtures")));
    entries.map(|entry| newest(&entry.path())).max().unwrap_or(SystemTime::UNIX_EPOCH)
}
