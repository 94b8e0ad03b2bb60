//! What the stories share.

use serde_json::Value;
use toolyard_plugins::sandbox::{Answer, Job, Limits, Sandbox, SandboxError, Settings};

pub(crate) fn settings() -> Settings {
    Settings { places: 2, ..Settings::program(env!("CARGO_BIN_EXE_toolyard-js-worker")) }
}

pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(settings())
}

/// Runs statements in a sandbox of their own.
pub(crate) async fn run(code: &str) -> Result<Answer, SandboxError> {
    sandbox().call(Job::body(code)).await
}

/// The value of an expression.
pub(crate) async fn value(code: &str) -> Value {
    sandbox().call(Job::formula(code)).await.expect(code).value
}

/// Little of everything, so that a test is quick.
pub(crate) fn tight() -> Limits {
    Limits { time_ms: 300, memory_bytes: 16 << 20, ..Limits::default() }
}
