//! The far side of the tools: a process of its own that writes down every
//! request before it answers, and sometimes hangs up instead of answering.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::dice::Dice;
use crate::history::Record;

/// Serves until it is killed. Prints its address as the first line.
pub fn serve(file: &Path, seed: u64) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let out = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
    let book = Arc::new(Mutex::new(Book { out, known: HashSet::new(), dice: Dice::new(seed) }));
    for socket in listener.incoming() {
        let (socket, book) = (socket?, book.clone());
        std::thread::spawn(move || {
            let _ = attend(socket, &book);
        });
    }
    Ok(())
}

struct Book {
    out: std::fs::File,
    known: HashSet<String>,
    dice: Dice,
}

impl Book {
    /// Writes an effect down, on the disk, before anybody hears of it.
    fn enter(&mut self, call: &str) -> std::io::Result<bool> {
        let repeat = !self.known.insert(call.to_owned());
        let cut = self.dice.chance(3);
        let record = Record::Effect { call: call.to_owned(), at: super::now_ms(), repeat, cut };
        writeln!(self.out, "{}", serde_json::to_string(&record)?)?;
        self.out.sync_data()?;
        Ok(cut)
    }
}

fn attend(socket: TcpStream, book: &Mutex<Book>) -> std::io::Result<()> {
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut socket = socket;
    loop {
        let (mut length, mut call, mut line) = (0_usize, String::new(), String::new());
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "idempotency-key" => call = value.trim().to_owned(),
                _ => {}
            }
        }
        std::io::copy(&mut reader.by_ref().take(u64::try_from(length).unwrap_or(0)), &mut std::io::sink())?;
        let cut = book.lock().map(|mut book| book.enter(&call)).map_err(|_| std::io::ErrorKind::Other)??;
        if cut {
            return Ok(());
        }
        let body = format!("{{\"done\":\"{call}\"}}");
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(format!("{head}{body}").as_bytes())?;
    }
}

/// The running process, as the driver sees it.
pub(crate) struct FarSide {
    child: Child,
    pub(crate) address: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl FarSide {
    pub(crate) fn start(program: &Path, seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("effects.jsonl");
        let mut command = Command::new(program);
        command.arg("far-side").arg("--file").arg(&file).args(["--seed", &seed.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the far side");
        let mut address = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut address).expect("its address");
        Self { child, address: address.trim().to_owned(), file, _folder: folder }
    }

    pub(crate) fn effects(&self) -> Vec<Record> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

impl Drop for FarSide {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
