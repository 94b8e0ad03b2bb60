//! The thread that starts sandbox processes, and stops those that nobody uses.
//!
//! A process dies with the thread that started it (`PR_SET_PDEATHSIG`), so one
//! thread that lives as long as the pool starts them all.

use std::io;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::pool::Pool;
use super::process::Process;

/// How often idle processes are looked at.
const ROUND: Duration = Duration::from_secs(1);

/// Asks for a process.
#[derive(Debug)]
pub(super) struct Wish {
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Process>>,
}

pub(super) type Wishes = SyncSender<Wish>;

/// The queue of wishes. There is one wish per place at most, and those of
/// callers who went away meanwhile; a full queue fails the call.
pub(super) fn queue(places: usize) -> (Wishes, Receiver<Wish>) {
    sync_channel(4 * places)
}

/// Runs until the pool is gone.
pub(super) fn keep(pool: Weak<Pool>, wishes: Receiver<Wish>) -> io::Result<()> {
    std::thread::Builder::new().name("sandbox".to_owned()).spawn(move || {
        loop {
            let wish = wishes.recv_timeout(ROUND);
            let Some(pool) = pool.upgrade() else { return };
            match wish {
                Ok(wish) => {
                    // The pipes belong to the runtime of whoever asks.
                    let _inside = wish.runtime.enter();
                    // Nobody waits any more: the process is dropped, and so killed.
                    let _ = wish.answer.send(Process::start(&pool.settings));
                }
                Err(RecvTimeoutError::Timeout) => pool.dismiss_idle(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    })?;
    Ok(())
}

/// A new process, from the keeper's thread.
pub(super) async fn wish(wishes: &Wishes) -> io::Result<Process> {
    let (answer, started) = oneshot::channel();
    let gone = || io::Error::other("the thread that starts processes has ended");
    wishes.try_send(Wish { runtime: Handle::current(), answer }).map_err(|error| match error {
        TrySendError::Full(_) => io::Error::other("too many processes are being started"),
        TrySendError::Disconnected(_) => gone(),
    })?;
    started.await.map_err(|_| gone())?
}
