//! A gateway process that is killed, stopped and started again.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) const SECRET: &str = "sk_faults_0123456789abcdef";

pub(crate) struct Node {
    program: Mutex<PathBuf>,
    folder: tempfile::TempDir,
    env: Vec<(&'static str, String)>,
    child: Mutex<Option<Child>>,
    /// Seed and rate of commits that fail by chance.
    chance: Option<(u64, u64)>,
    lives: AtomicU64,
}

impl Node {
    pub(crate) fn start(
        program: &Path,
        database: Option<&str>,
        redis: Option<&str>,
        far_side: &str,
        chance: Option<(u64, u64)>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut env = vec![
            ("TOOLYARD_DATA", folder.path().to_str().unwrap_or_default().to_owned()),
            ("TOOLYARD_SECRET_KEY", SECRET.to_owned()),
            ("TOOLYARD_PUBLIC_KEY", "pk_faults_0123456789abcdef".to_owned()),
            ("TOOLYARD_JWT_SECRET", "a-secret-of-the-faults-0123456789abcdef".to_owned()),
            ("TOOLYARD_ALLOW_PRIVATE_NETWORK", far_side.to_owned()),
        ];
        env.extend(database.map(|url| ("TOOLYARD_DATABASE_URL", url.to_owned())));
        env.extend(redis.map(|url| ("TOOLYARD_REDIS_URL", url.to_owned())));
        let program = Mutex::new(program.to_owned());
        let node = Self { program, folder, env, child: Mutex::default(), chance, lives: AtomicU64::new(0) };
        node.begin();
        node
    }

    /// The next life is of this release.
    pub(crate) fn becomes(&self, program: &Path) {
        program.clone_into(&mut self.program.lock().unwrap());
    }

    /// Starts a process, if none lives.
    pub(crate) fn begin(&self) {
        let mut slot = self.child.lock().unwrap();
        if slot.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return;
        }
        let data = self.folder.path();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(data.join("log.txt"));
        let mut command = Command::new(&*self.program.lock().unwrap());
        for (name, _) in
            std::env::vars().filter(|(n, _)| n.starts_with("TOOLYARD_") || n.ends_with("_API_KEY"))
        {
            command.env_remove(name);
        }
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(data);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some((seed, per_mille)) = self.chance {
            // Each life throws anew: one whose first commit fails is not born.
            let life = self.lives.fetch_add(1, Ordering::SeqCst);
            let seed = seed.wrapping_mul(1_000).wrapping_add(life);
            command.env("TOOLYARD_FAILPOINT_DICE", format!("{seed}:{per_mille}"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("a log"));
        *slot = Some(command.spawn().expect("the gateway"));
    }

    /// kill -9; the next life begins with `begin`.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stands still, or goes on.
    pub(crate) fn signal(&self, signal: Signal) {
        let slot = self.child.lock().unwrap();
        let pid = slot.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends it for good.
    pub(crate) fn end(&self) {
        self.kill();
    }

    /// Where it listens, if it does.
    pub(crate) fn url(&self) -> Option<String> {
        let pid = self.child.lock().unwrap().as_ref()?.id();
        let text = std::fs::read_to_string(self.folder.path().join("gateway.json")).ok()?;
        let here: Value = serde_json::from_str(&text).ok()?;
        (here["pid"] == pid).then(|| here["url"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log.txt")).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        self.kill();
    }
}
