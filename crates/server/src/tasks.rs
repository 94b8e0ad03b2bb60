//! The gateway's own tasks: named, counted, joined at shutdown, and a panic in
//! one is reported instead of lost.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio_util::task::TaskTracker;

/// All tasks of the edge. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(TaskTracker);

impl Tasks {
    pub(crate) fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(task = name, "a task panicked");
            }
        });
    }

    /// Waits until every task has ended. False if some are left after `within`.
    pub(crate) async fn join(&self, within: Duration) -> bool {
        self.0.close();
        tokio::time::timeout(within, self.0.wait()).await.is_ok()
    }
}
