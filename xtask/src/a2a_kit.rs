//! Runs the public compatibility kit of A2A against a gateway of its own: a
//! checkout of the kit lies in `--dir`, its branch says which version it judges.
//! By command only: `make test` never needs it.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A gateway that ends with the chore.
struct Gateway {
    child: Child,
    data: PathBuf,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

fn said(what: &str) -> impl FnOnce(std::io::Error) -> String {
    move |e| format!("{what}: {e}")
}

/// Runs the kit and answers what it said last.
pub(crate) fn run(kit: &Path, python: &str) -> Result<String, String> {
    if !kit.join("run_tck.py").exists() {
        return Err(format!("{} holds no run_tck.py: it is no checkout of the kit", kit.display()));
    }
    let built = Command::new(env!("CARGO")).args(["build", "-p", "toolyard"]).status();
    if !built.map_err(said("cargo"))?.success() {
        return Err("the gateway does not build".to_owned());
    }
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(said("a free port"))?;
    let gateway = start(&port.to_string())?;
    let base = format!("http://{port}");
    // Only the kit of 1.0 has scenarios; each judges in its own words.
    let new = kit.join("scenarios").exists();
    let rounds: &[&[&str]] = if new {
        &[&["--transport", "jsonrpc,http_json"]]
    } else {
        &[&["--category", "mandatory"], &["--category", "capabilities"], &["--category", "features"]]
    };
    let mut failed = 0;
    for round in rounds {
        let mut command = Command::new(python);
        command.current_dir(kit).arg("run_tck.py").args(*round);
        if new {
            command.args(["--sut-host", &format!("{base}/a2a/tck/v1")]);
        } else {
            command.args(["--sut-url", &format!("{base}/a2a"), "--transports", "jsonrpc"]);
        }
        let done = command.status().map_err(said(python))?;
        failed += usize::from(!done.success());
    }
    drop(gateway);
    if new {
        println!("{}", judged(kit)?);
    }
    match failed {
        0 => Ok("the kit has nothing to say".to_owned()),
        n => Err(format!("{n} of {} rounds of the kit have findings; see above", rounds.len())),
    }
}

/// What the report of the 1.0 kit says, in true words: its own table counts a
/// requirement that it has no test for as failed.
fn judged(kit: &Path) -> Result<String, String> {
    let report = kit.join("reports/compatibility.json");
    let text = std::fs::read_to_string(&report).map_err(said("the kit's report"))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("the kit's report: {e}"))?;
    let all = report["per_requirement"].as_object().ok_or("the kit's report has no requirements")?;
    let mut lines = Vec::new();
    for level in ["MUST", "SHOULD", "MAY"] {
        let of = |status: &str| -> Vec<&str> {
            let fits = |one: &Value| one["level"] == level && one["status"] == status;
            all.iter().filter(|(_, one)| fits(one)).map(|(id, _)| id.as_str()).collect()
        };
        let (failed, untested) = (of("FAIL"), of("NOT TESTED"));
        lines.push(format!(
            "{level}: {} passed, {} failed {failed:?}, {} skipped, {} without a test in the kit {untested:?}",
            of("PASS").len(),
            failed.len(),
            of("SKIPPED").len(),
            untested.len(),
        ));
    }
    Ok(lines.join("\n"))
}

fn start(address: &str) -> Result<Gateway, String> {
    let folder = crate::workspace::Workspace::read().map_err(|e| e.to_string())?.root;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from);
    let data = std::env::temp_dir().join(format!("toolyard-a2a-kit-{}", std::process::id()));
    let child = Command::new(target.join("debug/toolyard"))
        .args(["serve", "--listen", address])
        .arg("--data")
        .arg(&data)
        .current_dir(&folder)
        // The kit's receiver of notifications is on this machine.
        .env("TOOLYARD_ALLOW_PRIVATE_NETWORK", "127.0.0.1,localhost")
        .env("TOOLYARD_DEFAULT_AGENT", "tck")
        .env("TOOLYARD_AUTH", "off")
        .spawn()
        .map_err(|e| format!("the gateway: {e}"))?;
    let gateway = Gateway { child, data };
    let started = Instant::now();
    while TcpStream::connect(address).is_err() {
        if started.elapsed() > Duration::from_secs(60) {
            return Err("the gateway does not start".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(gateway)
}
