//! A started program and all that it started: one process group, which ends
//! when we say so, and when we forget it.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::environment;
use crate::fault::Fault;
use crate::settings::Program;

/// From the end of its input to the end of its patience: a program may clean up.
const GRACE: Duration = Duration::from_millis(1200);
/// From the signal to the end.
const TERM: Duration = Duration::from_millis(400);

/// Owns a process group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
}

/// A program's three ends.
pub(crate) struct Ends {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

impl Process {
    /// Starts a program: its argv as given, no shell, a clean environment, a
    /// group of its own.
    pub(crate) fn start(program: &Program) -> Result<(Self, Ends), Fault> {
        let mut command = Command::new(&program.command);
        command
            .args(&program.args)
            .env_clear()
            .envs(environment::of(program))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = &program.cwd {
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(|e| {
            let text = format!("{} cannot be started: {e}", program.command);
            match e.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Fault::lasting(text),
                _ => Fault::passing(text),
            }
        })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let ends = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let process = Self { child, group };
        let Some(((input, output), errors)) = ends else {
            return Err(Fault::passing("the program has no input or output"));
        };
        Ok((process, Ends { input, output, errors }))
    }

    /// Returns once the program itself has ended, whatever its children do
    /// with the pipes they inherited.
    pub(crate) async fn ended(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Waits for the end after the input was closed; then signals the group,
    /// then kills it. Nothing of the group is left.
    pub(crate) async fn stop(mut self) {
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(TERM, self.child.wait()).await;
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait().await;
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An empty group is what we want.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The runtime reaps the leader; its children have only us.
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn children_of_this_process() -> usize {
        let me = std::process::id().to_string();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let parents = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        // The second field behind the name is the parent.
        parents.filter(|stat| stat.rsplit(')').next().unwrap().split_whitespace().nth(1) == Some(&me)).count()
    }

    /// Row X17: a thousand starts leave no process behind, not even a zombie.
    #[tokio::test]
    async fn x17_a_thousand_starts_leave_nothing_behind() {
        let program = Program {
            command: "cat".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit: Vec::new(),
            cwd: None,
        };
        for i in 0..1000 {
            let (process, ends) = Process::start(&program).unwrap();
            drop(ends);
            match i % 2 {
                0 => process.stop().await,
                _ => drop(process),
            }
        }
        // What was only dropped is reaped by the runtime, a moment later.
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while children_of_this_process() > 0 && std::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(children_of_this_process(), 0);
    }
}
