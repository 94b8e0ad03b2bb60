//! What the system says of processes: processor time and memory.

use std::fs;

use super::DriveError;

fn read(path: &str) -> Result<String, DriveError> {
    fs::read_to_string(path).map_err(|e| DriveError::File(path.to_owned(), e))
}

#[expect(clippy::cast_precision_loss, reason = "ticks and kilobytes are far below 2^52")]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// What `/proc/pid/stat` says of a process.
#[derive(Debug, Clone, Copy)]
struct Stat {
    parent: u32,
    /// Ticks of the process itself.
    own: u64,
    /// Ticks of its children that have ended.
    ended: u64,
}

fn stat(pid: u32) -> Result<Stat, DriveError> {
    let text = read(&format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; fields are counted after it.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
    let parent = fields.get(1).and_then(|f| f.parse().ok());
    match (parent, number(11), number(12), number(13), number(14)) {
        (Some(parent), Some(user), Some(system), Some(past_user), Some(past_system)) => {
            Ok(Stat { parent, own: user + system, ended: past_user + past_system })
        }
        _ => Err(DriveError::Unexpected { what: "/proc/pid/stat", text }),
    }
}

/// A process and everything that it started and that still runs.
fn tree(root: u32) -> Result<Vec<u32>, DriveError> {
    let entries = fs::read_dir("/proc").map_err(|e| DriveError::File("/proc".to_owned(), e))?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // One that ends meanwhile is not there any more.
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, stat(pid).ok()?.parent))).collect();
    let (mut found, mut seen) = (vec![root], 0);
    while let Some(parent) = found.get(seen).copied() {
        seen += 1;
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
    }
    Ok(found)
}

/// Processor seconds that a process and its children have used: user and system.
pub(super) fn tree_seconds(pid: u32) -> Result<f64, DriveError> {
    let root = stat(pid)?;
    let children = tree(pid)?.into_iter().skip(1);
    // A child that ends meanwhile counts with its parent the next time.
    let live: u64 = children.filter_map(|pid| stat(pid).ok()).map(|s| s.own + s.ended).sum();
    Ok(seconds(root.own + root.ended + live))
}

/// Processor seconds that the whole machine has used.
pub(super) fn machine_seconds() -> Result<f64, DriveError> {
    let stat = read("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|f| f.parse().ok()).collect();
    // user, nice, system, (idle, iowait,) irq, softirq
    let busy = [0, 1, 2, 5, 6].into_iter().filter_map(|at| ticks.get(at)).sum();
    Ok(seconds(busy))
}

/// A figure of `/proc/pid/status` in kB.
fn status_kb(pid: u32, name: &'static str) -> Result<f64, DriveError> {
    let status = read(&format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|kb| kb.parse().ok());
    value.ok_or(DriveError::Unexpected { what: name, text: status })
}

/// Resident memory of a process and its children now, in kB.
pub(super) fn resident_kb(pid: u32) -> Result<f64, DriveError> {
    let root = status_kb(pid, "VmRSS")?;
    let children = tree(pid)?.into_iter().skip(1);
    Ok(root + children.filter_map(|pid| status_kb(pid, "VmRSS").ok()).sum::<f64>())
}

/// From now on the peak counts anew.
pub(super) fn forget_peak(pid: u32) -> Result<(), DriveError> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").map_err(|e| DriveError::File(path, e))
}

/// The most that was resident of the process itself, in kB.
pub(super) fn peak_kb(pid: u32) -> Result<f64, DriveError> {
    status_kb(pid, "VmHWM")
}
