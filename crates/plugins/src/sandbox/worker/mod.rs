//! The sandbox process: takes one job after another from its stdin, each into a
//! fresh runtime that was made ready before.
//!
//! The gateway is gone when stdin ends; the process ends too.

mod confine;
mod fault;
mod function;
mod intl;
mod native;
mod perform;
mod pipe;
mod room;
mod sit;
mod state;

use std::io;
use std::process::ExitCode;

pub use function::is_name;

use super::error::SandboxError;
use super::wire::{Done, Order, Report, Scene, Task};
use confine::Wear;
use perform::Performance;
use room::Room;

/// Runs a sandbox process to its end. A program calls this first of all: before
/// it starts threads, reads its configuration or opens files.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sandbox process: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Takes everything from this process that a sandbox process does without, for
/// good. Public so that a test can try what is left.
#[doc(hidden)]
pub fn confine() -> io::Result<()> {
    confine::confine(&Wear::open())
}

fn serve() -> io::Result<()> {
    let wear = Wear::open();
    confine::confine(&wear)?;
    loop {
        let room = Room::open().map_err(|error| io::Error::other(error.to_string()))?;
        pipe::send(&Report::Ready)?;
        match next_work()? {
            Some(Work::Task(task)) => {
                let performance = perform::perform(&room, &task)?;
                report(performance, Look { wear: &wear, close: true }, task.limits.memory_bytes)?;
            }
            Some(Work::Scene(scene)) => {
                if !sit::sit(&room, &scene, &wear)? {
                    return Ok(());
                }
            }
            None => return Ok(()),
        }
    }
}

/// Whether the process itself is looked at, beside what it did.
#[derive(Clone, Copy)]
struct Look<'a> {
    wear: &'a Wear,
    close: bool,
}

/// Tells how a call ended. A process that has had enough ends here.
fn report(performance: Performance, look: Look<'_>, limit_bytes: usize) -> io::Result<()> {
    let Performance { mut outcome, console, took } = performance;
    if outcome.as_ref().is_err_and(|error| fault::is_speechless(error, look.wear.peak(), limit_bytes)) {
        outcome = Err(SandboxError::Memory { limit_bytes });
    }
    let spoiled = outcome.as_ref().is_err_and(SandboxError::spoils);
    let retires = spoiled || (look.close && look.wear.is_worn());
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    pipe::send(&Report::Done(Done { outcome, console, took_us, retires }))?;
    if retires {
        // Without clearing up: the runtime may be in any state, and the kernel is quicker.
        std::process::exit(0);
    }
    Ok(())
}

/// What a fresh runtime is for.
enum Work {
    Task(Task),
    Scene(Scene),
}

/// The next work; nothing when the gateway is gone. Answers to questions of a
/// call that ended without waiting for them are passed over.
fn next_work() -> io::Result<Option<Work>> {
    loop {
        match pipe::receive()? {
            Some(Order::Run(task)) => return Ok(Some(Work::Task(task))),
            Some(Order::Sit(scene)) => return Ok(Some(Work::Scene(scene))),
            Some(Order::Told { .. } | Order::Leave) => {}
            Some(Order::Call { .. }) => return Err(io::Error::other("a call of nothing")),
            None => return Ok(None),
        }
    }
}
