//! A tool whose every execution is one line of a file, written before it
//! answers. Crash tests count the lines.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use toolyard_protocol::agent::execution::Recorder;

use crate::{CallContext, ToolFailure};

pub(crate) async fn execute(
    recorder: &Recorder,
    args: &Value,
    context: &CallContext,
) -> Result<Value, ToolFailure> {
    let line = format!("{} {}\n", context.call, args);
    write(&recorder.file, &line).await.map_err(|e| ToolFailure::TellModel(format!("cannot record: {e}")))?;
    match args.get("fail").and_then(Value::as_str) {
        Some(text) => Err(ToolFailure::TellModel(text.to_owned())),
        None => Ok(json!({ "success": true, "recorded": context.call.as_str() })),
    }
}

async fn write(path: &str, line: &str) -> std::io::Result<()> {
    let mut file = tokio::fs::OpenOptions::new().create(true).append(true).open(path).await?;
    file.write_all(line.as_bytes()).await?;
    file.sync_all().await
}
