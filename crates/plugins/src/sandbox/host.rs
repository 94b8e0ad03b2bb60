//! What code in the sandbox may ask its gateway for.

use futures::future::BoxFuture;
use serde_json::Value;

/// Answers questions of one call. Code asks with `await host(name, value)`; a
/// call without a `Host` has no such function.
///
/// This is the seam for what plugins need from outside, such as `fetch` through
/// the guarded door: the process itself never gets a socket or a file.
pub trait Host: Send + Sync {
    /// The answer, or a sentence that the code gets as an `Error`.
    fn ask<'a>(&'a self, name: &'a str, value: Value) -> BoxFuture<'a, Result<Value, String>>;
}
