//! Named background tasks that are waited for at the end. The only place that
//! spawns.

use std::future::Future;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one process and the token that stops them.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task. A panic in it is logged with its name.
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // On the heap at once: what lies around it is moved several times.
        let task = Box::pin(std::panic::AssertUnwindSafe(task).catch_unwind());
        let guarded = async move {
            if task.await.is_err() {
                tracing::error!(task = name, "a background task panicked");
            }
        };
        self.tracker.spawn(guarded);
    }

    /// Runs something to its end even if the caller goes away, as a client
    /// does that hangs up. None if it panicked.
    pub async fn detached<T: Send + 'static>(&self, task: BoxFuture<'static, T>) -> Option<T> {
        self.tracker.spawn(task).await.ok()
    }

    /// Cancelled when the process is to end.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Tells all tasks to stop and waits for them.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Waits until every task has ended. False if some are left after `within`.
    pub async fn join(&self, within: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(within, self.tracker.wait()).await.is_ok()
    }
}
