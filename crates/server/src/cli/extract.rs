//! Reads the text of one document, in a process of its own with little room
//! and little time: a document of a few kilobytes may ask for gigabytes.

use std::io::{Read, Write};

use rustix::process::{Resource, Rlimit, setrlimit};
use toolyard_runtime::{Form, text_of};

/// Bytes of address space.
const ROOM: u64 = 768 << 20;
/// Seconds of processor time.
const TIME: u64 = 20;

/// `toolyard extract <form>`: the document on standard input, its text or
/// `{code, message}` on standard output.
pub(crate) fn run(form: &str) -> std::process::ExitCode {
    for (what, most) in
        [(Resource::As, ROOM), (Resource::Cpu, TIME), (Resource::Nofile, 16), (Resource::Core, 0)]
    {
        let _ = setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) });
    }
    let Some(form) = Form::named(form) else { return 2.into() };
    let mut bytes = Vec::new();
    if std::io::stdin().read_to_end(&mut bytes).is_err() {
        return 2.into();
    }
    let (code, said) = match text_of(form, &bytes) {
        Ok(text) => (0, text),
        Err(refused) => (3, serde_json::to_string(&refused).unwrap_or_default()),
    };
    let written = std::io::stdout().write_all(said.as_bytes());
    if written.is_ok() { code.into() } else { 2.into() }
}
