//! What the process takes from itself before it sees any code: files, sockets,
//! children, privileges, and memory and processor time without end.
//!
//! QuickJS offers code none of these. This is the second wall, for the day the
//! first one has a hole.

use std::fs::File;
use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};
use toolyard_protocol::limits::{
    SANDBOX_MEMORY_MAX_BYTES, SANDBOX_PROCESS_CPU_SECONDS, SANDBOX_PROCESS_RESIDENT_BYTES,
};

/// Address space beside the code's own memory: the program, its stack, the
/// allocator's reserve, the copies of a job and of a result.
const AROUND: u64 = 256 << 20;
/// The three pipes and the process's own statistics.
const FILES: u64 = 4;

/// Takes everything away. A limit that the system does not know is passed over;
/// one that it refuses ends the process.
pub(super) fn confine(wear: &Wear) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // The gateway may be killed while code runs that never looks at its pipe.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        rustix::thread::set_no_new_privs(true)?;
    }
    let space = address_space().saturating_add(AROUND + 2 * SANDBOX_MEMORY_MAX_BYTES as u64);
    #[cfg(target_os = "linux")]
    limit(Resource::As, space)?;
    #[cfg(not(target_os = "linux"))]
    let _ = space;
    limit(Resource::Cpu, SANDBOX_PROCESS_CPU_SECONDS)?;
    limit(Resource::Nofile, FILES)?;
    limit(Resource::Nproc, 0)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    filter::apply(wear.0.as_ref())?;
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = wear;
    Ok(())
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Bytes of address space that the program has already.
fn address_space() -> u64 {
    kilobytes(&std::fs::read_to_string(STATUS).unwrap_or_default(), "VmSize:")
}

/// What the kernel knows of the process.
const STATUS: &str = "/proc/self/status";

/// A line of the status, in bytes.
fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}

/// Tells when a process has served long enough: memory that the allocator keeps
/// and processor time only ever grow.
#[derive(Debug)]
pub(super) struct Wear(Option<File>);

impl Wear {
    /// Opened while files can be opened.
    pub(super) fn open() -> Self {
        Self(File::open(STATUS).ok())
    }

    pub(super) fn is_worn(&self) -> bool {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec;
        // A job that starts below this line still has its whole time.
        let old = u64::try_from(cpu).unwrap_or(0) > SANDBOX_PROCESS_CPU_SECONDS / 2;
        old || self.read("VmRSS:") > SANDBOX_PROCESS_RESIDENT_BYTES
    }

    /// The most memory that the process ever had.
    pub(super) fn peak(&self) -> u64 {
        self.read("VmHWM:")
    }

    fn read(&self, name: &str) -> u64 {
        let mut text = [0; 4096];
        let read = |file: &File| rustix::io::pread(file, &mut text, 0).unwrap_or(0);
        let count = self.0.as_ref().map_or(0, read);
        kilobytes(&String::from_utf8_lossy(&text[..count]), name)
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    //! The system calls that are left: memory, time, randomness, and the pipes.
    //! Everything else answers "not permitted", also reading and writing what
    //! the gateway itself inherited open from whoever started it.

    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    const LEFT: &[i64] = &[
        libc::SYS_ppoll,
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_gettimeofday,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_time,
    ];

    /// Calls that are left for these numbers only, of this argument: files, mostly.
    fn narrowed(statistics: i32) -> [(i64, u8, Vec<i32>); 5] {
        let itself = rustix::process::getpid().as_raw_nonzero().get();
        [
            // What `abort` does.
            (libc::SYS_tgkill, 0, vec![itself]),
            (libc::SYS_read, 0, vec![0]),
            (libc::SYS_write, 0, vec![1, 2]),
            (libc::SYS_pread64, 0, vec![statistics]),
            // Memory, never a file.
            (libc::SYS_mmap, 4, vec![-1]),
        ]
    }

    pub(super) fn apply(statistics: Option<&File>) -> io::Result<()> {
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
        let mut rules: BTreeMap<_, _> = LEFT.iter().map(|call| (*call, Vec::new())).collect();
        for (call, argument, numbers) in narrowed(statistics.map_or(-1, AsRawFd::as_raw_fd)) {
            let rule = |number: i32| {
                let number = u64::from(number.cast_unsigned());
                let is = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, number)?;
                SeccompRule::new(vec![is])
            };
            let allowed: Result<Vec<_>, _> = numbers.into_iter().map(rule).collect();
            rules.insert(call, allowed.map_err(io::Error::other)?);
        }
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter =
            SeccompFilter::new(rules, refused, SeccompAction::Allow, arch).map_err(io::Error::other)?;
        let program = BpfProgram::try_from(filter).map_err(io::Error::other)?;
        seccompiler::apply_filter(&program).map_err(io::Error::other)
    }
}
