//! The process's two pipes, without a buffer in between: waiting for a timer
//! must see whether a message lies there.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::stdio::{stdin, stdout};
use toolyard_protocol::limits::SANDBOX_INPUT_BYTES;

use crate::sandbox::wire::{self, HEAD, Order, Report};

/// Room for what stands around code and arguments, and for escaped signs.
const MOST: usize = 8 * SANDBOX_INPUT_BYTES;

pub(super) fn send(report: &Report) -> io::Result<()> {
    let bytes = wire::pack(report)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match write(stdout(), rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The next message; nothing when the gateway is gone.
pub(super) fn receive() -> io::Result<Option<Order>> {
    let mut head = [0; HEAD];
    if !fill(&mut head)? {
        return Ok(None);
    }
    let mut bytes = vec![0; wire::length(head, MOST)?];
    if !fill(&mut bytes)? {
        return Ok(None);
    }
    wire::unpack(&bytes).map(Some)
}

/// Waits for a message at most so long. Says whether one has begun to arrive.
pub(super) fn arrives_within(time: Duration) -> io::Result<bool> {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let time = Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() };
    match poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], Some(&time)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Fills the buffer. Says no when the pipe is closed.
fn fill(mut rest: &mut [u8]) -> io::Result<bool> {
    while !rest.is_empty() {
        match read(stdin(), &mut *rest) {
            Ok(0) => return Ok(false),
            Ok(count) => rest = &mut rest[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}
