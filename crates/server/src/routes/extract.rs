//! Has a document read by a process that may die of it.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;
use toolyard_protocol::{ApiError, ErrorCode};
use toolyard_runtime::Form;

use crate::http::Refusal;

/// How long a document may take to be read.
const TIME: Duration = Duration::from_secs(30);
/// Documents that are read at once; more wait.
static ROOM: Semaphore = Semaphore::const_new(2);

pub(super) async fn text_of(form: Form, bytes: Vec<u8>) -> Result<String, Refusal> {
    // Plain text is only looked at.
    if form == Form::Text {
        return Ok(toolyard_runtime::text_of(form, &bytes)?);
    }
    let unreadable = || {
        Refusal::new(
            ErrorCode::UnsupportedMedia,
            "The document cannot be read: it needs too much memory or time",
        )
    };
    let broken = |_| Refusal::new(ErrorCode::Internal, "Internal error");
    let _place = ROOM.acquire().await.map_err(|_| unreadable())?;
    let program = std::env::current_exe().map_err(broken)?;
    let mut child = Command::new(program)
        .args(["extract", form.name()])
        .env_clear()
        // KiB that the allocator sets aside: less than the process may have.
        .env("MIMALLOC_ARENA_RESERVE", "65536")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(broken)?;
    let Some(mut stdin) = child.stdin.take() else { return Err(unreadable()) };
    let read = async {
        // A reader that has died does not take the rest.
        let _ = stdin.write_all(&bytes).await;
        drop(stdin);
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(TIME, read).await.map_err(|_| unreadable())?.map_err(broken)?;
    match output.status.code() {
        Some(0) => String::from_utf8(output.stdout).map_err(|_| unreadable()),
        Some(3) => match serde_json::from_slice::<ApiError>(&output.stdout) {
            Ok(refused) => Err(refused.into()),
            Err(_) => Err(unreadable()),
        },
        _ => Err(unreadable()),
    }
}
