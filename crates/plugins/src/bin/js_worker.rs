//! A sandbox process and nothing else, for the tests of this crate. With the
//! argument `try` it confines itself and says what native code can still do.

use std::fs::File;
use std::io::{self, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, ExitCode};

use toolyard_plugins::sandbox::worker;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_none_or(|argument| argument != "try") {
        return worker::main();
    }
    match try_everything() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn try_everything() -> io::Result<()> {
    let open = File::open("/dev/null")?;
    let parent = rustix::process::getppid();
    worker::confine()?;
    say("memory", Ok::<_, io::Error>(vec![1u8; 1 << 20].len()))?;
    say("read a file", File::open("/etc/passwd"))?;
    say("write a file", File::create("/tmp/toolyard-sandbox-escape"))?;
    say("read the environment", File::open("/proc/self/environ"))?;
    say("list a folder", std::fs::read_dir("/"))?;
    say("link a file", std::os::unix::fs::symlink("/etc/passwd", "/tmp/toolyard-sandbox-link"))?;
    say("read an open file", io::Read::read(&mut &open, &mut [0; 1]))?;
    say("connect to this machine", TcpStream::connect("127.0.0.1:80"))?;
    say("connect to the metadata service", TcpStream::connect("169.254.169.254:80"))?;
    say("bind a socket", UdpSocket::bind("127.0.0.1:0"))?;
    say("start a program", Command::new("/bin/true").status())?;
    say("start a thread", std::thread::Builder::new().spawn(|| ()))?;
    let parent = parent.ok_or_else(|| io::Error::other("no parent"))?;
    say("signal the parent", rustix::process::kill_process(parent, rustix::process::Signal::CONT))
}

fn say<T, E: Into<io::Error>>(what: &str, outcome: Result<T, E>) -> io::Result<()> {
    let how = match outcome.map_err(Into::into) {
        Ok(_) => "done".to_owned(),
        Err(error) => error.raw_os_error().map_or_else(|| error.to_string(), |code| format!("error {code}")),
    };
    writeln!(io::stdout(), "{what}: {how}")
}
