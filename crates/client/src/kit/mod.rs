//! Plugins that are ready to use, and examples of how to write one: files
//! below one folder, a SQLite database that is only read, the time.

mod filesystem;
mod folder;
#[cfg(feature = "sqlite")]
mod sqlite;
mod time;

pub use filesystem::filesystem;
#[cfg(feature = "sqlite")]
pub use sqlite::sqlite;
pub use time::time;

use crate::tool::Failure;

/// Files and databases block: they are used on threads that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::from("the tool crashed"))?
}
