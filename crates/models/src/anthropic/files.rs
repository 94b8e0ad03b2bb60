//! Images and documents of a user's message.

use serde_json::{Value, json};

/// The images that the vendor reads.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A block for a file. What the vendor cannot read is told to the model as
/// text.
pub(super) fn block(media_type: &str, url: Option<&str>, name: Option<&str>) -> Value {
    let kind = match media_type.split(';').next().unwrap_or_default().trim() {
        "image/jpg" => "image/jpeg",
        other => other,
    };
    let source = url.and_then(|url| source(kind, url));
    match source {
        Some(source) if IMAGES.contains(&kind) => json!({ "type": "image", "source": source }),
        Some(source) if kind == "application/pdf" => {
            let mut block = json!({ "type": "document", "source": source });
            if let Some(name) = name {
                block["title"] = json!(name);
            }
            block
        }
        _ => json!({ "type": "text", "text": words(media_type, url, name) }),
    }
}

fn source(kind: &str, url: &str) -> Option<Value> {
    if url.starts_with("https://") || url.starts_with("http://") {
        return Some(json!({ "type": "url", "url": url }));
    }
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then(|| json!({ "type": "base64", "media_type": kind, "data": data }))
}

fn words(media_type: &str, url: Option<&str>, name: Option<&str>) -> String {
    let name = name.unwrap_or("file");
    match url {
        Some(url) if !url.starts_with("data:") => format!("[file {name} ({media_type}): {url}]"),
        _ => format!("[file {name} ({media_type}) is not readable here]"),
    }
}
