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

/// Processor seconds that a process has used: user and system.
pub(super) fn cpu_seconds(pid: u32) -> Result<f64, DriveError> {
    let path = format!("/proc/{pid}/stat");
    let stat = read(&path)?;
    // The name in parentheses may hold anything; fields are counted after it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let tick = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
    match (tick(11), tick(12)) {
        (Some(user), Some(system)) => Ok(seconds(user + system)),
        _ => Err(DriveError::Unexpected { what: "/proc/pid/stat", text: stat }),
    }
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

/// Resident memory now, in kB.
pub(super) fn resident_kb(pid: u32) -> Result<f64, DriveError> {
    status_kb(pid, "VmRSS")
}

/// The most that was ever resident, in kB.
pub(super) fn peak_kb(pid: u32) -> Result<f64, DriveError> {
    status_kb(pid, "VmHWM")
}
