//! The plugin `filesystem` (row H45): files below one folder.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use super::folder::Folder;
use crate::error::ClientError;
use crate::plugin::{PluginBuilder, plugin};
use crate::tool::{CallContext, Failure, tool};

#[derive(Deserialize)]
struct At {
    path: String,
}

#[derive(Deserialize)]
struct Write {
    path: String,
    content: String,
}

fn path_only(about: &str) -> Value {
    json!({
        "type": "object",
        "properties": { "path": { "type": "string", "description": about } },
        "required": ["path"],
        "additionalProperties": false,
    })
}

/// `read_file`, `write_file` and `list_directory` below `root`. No path leads
/// out of it, and symbolic links are not followed.
pub fn filesystem(root: impl AsRef<Path>) -> Result<PluginBuilder, ClientError> {
    let root = root.as_ref();
    let folder = Folder::open(root)
        .map_err(|e| ClientError::settings(format!("the folder {} cannot be used: {e}", root.display())))?;
    let folder = Arc::new(folder);
    let of = |folder: &Arc<Folder>| Arc::clone(folder);

    let reader = of(&folder);
    let read = tool("read_file")
        .describe("Reads a text file.")
        .parameters(path_only("The file, relative to the folder that is shared."))
        .idempotent()
        .run(move |At { path }: At, _cx: CallContext| {
            let folder = of(&reader);
            blocking(move || folder.read(&path))
        });
    let writer = of(&folder);
    let write = tool("write_file")
        .describe("Writes a text file. A file that is there is replaced.")
        .parameters(json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "The file, relative to the folder that is shared." },
                "content": { "type": "string", "description": "All of its new content." },
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        }))
        // The same content again is the same file.
        .idempotent()
        .run(move |Write { path, content }: Write, _cx: CallContext| {
            let folder = of(&writer);
            async move {
                blocking(move || folder.write(&path, &content)).await?;
                Ok::<Value, Failure>(json!({ "success": true }))
            }
        });
    let lister = of(&folder);
    let list = tool("list_directory")
        .describe("Lists the entries of a folder.")
        .parameters(path_only("The folder, relative to the one that is shared; `.` for that one."))
        .idempotent()
        .run(move |At { path }: At, _cx: CallContext| {
            let folder = of(&lister);
            blocking(move || folder.list(&path))
        });
    Ok(plugin("filesystem", "1.0.0").tool(read).tool(write).tool(list))
}
