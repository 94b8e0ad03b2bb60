//! A PostgreSQL server of our own that may be crashed (`scripts/with-postgres`).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

pub(crate) struct Postgres {
    pub(crate) url: String,
    script: Child,
    talk: Mutex<(Option<ChildStdin>, BufReader<ChildStdout>)>,
}

impl Postgres {
    pub(crate) fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/with-postgres");
        let mut command = Command::new(script);
        command.arg("--serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().expect("scripts/with-postgres");
        let orders = script.stdin.take();
        let mut answers = BufReader::new(script.stdout.take().expect("its output"));
        let mut line = String::new();
        answers.read_line(&mut line).expect("its address");
        let url = line.trim().strip_prefix("url ").unwrap_or_else(|| panic!("with-postgres says {line:?}"));
        Self { url: url.to_owned(), script, talk: Mutex::new((orders, answers)) }
    }

    /// `stop`, `crash` or `start`; answers when it is done.
    pub(crate) fn order(&self, word: &str) {
        let mut talk = self.talk.lock().unwrap();
        let (orders, answers) = &mut *talk;
        writeln!(orders.as_mut().expect("it listens"), "{word}").expect("it listens");
        let mut line = String::new();
        answers.read_line(&mut line).expect("it answers");
        assert_eq!(line.trim(), format!("done {word}"));
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The server ends with the script's input.
        if let Ok(mut talk) = self.talk.lock() {
            talk.0 = None;
        }
        let _ = self.script.wait();
    }
}
