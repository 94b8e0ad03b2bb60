//! Files of a conversation. The vendor takes bytes or its own storage, never
//! other addresses; those are told to the model as words.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// Characters of a document's name.
const NAME_CHARS: usize = 120;

/// Documents have names, and a name comes once in a request.
#[derive(Debug, Default)]
pub(super) struct Files {
    names: BTreeSet<String>,
}

impl Files {
    pub(super) fn block(&mut self, media_type: &str, url: Option<&str>, name: Option<&str>) -> Value {
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        match url.and_then(source) {
            Some(source) => match (image_format(media_type), document_format(media_type)) {
                (Some(format), _) => json!({ "image": { "format": format, "source": source } }),
                (None, Some(format)) => {
                    let name = self.name(name.unwrap_or("file"));
                    json!({ "document": { "format": format, "name": name, "source": source } })
                }
                (None, None) => in_words(media_type, None, name),
            },
            None => in_words(media_type, url, name),
        }
    }

    /// The vendor takes letters, digits, single spaces, hyphens and brackets.
    fn name(&mut self, given: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
        let spaced: String = given.chars().map(|c| if fits(c) { c } else { ' ' }).take(NAME_CHARS).collect();
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let base = if words.is_empty() { "file".to_owned() } else { words.join(" ") };
        let numbered = |n: usize| if n == 1 { base.clone() } else { format!("{base} ({n})") };
        let free = (1..).map(numbered).find(|name| !self.names.contains(name)).unwrap_or(base.clone());
        self.names.insert(free.clone());
        free
    }
}

fn in_words(media_type: &str, url: Option<&str>, name: Option<&str>) -> Value {
    let name = name.unwrap_or("file");
    let text = match url {
        Some(url) if !url.starts_with("data:") => format!("[file {name} ({media_type}): {url}]"),
        Some(_) | None => format!("[file {name} ({media_type}) is not readable here]"),
    };
    json!({ "text": text })
}

/// Bytes of a `data:` address, or a place in the vendor's storage.
fn source(url: &str) -> Option<Value> {
    if url.starts_with("s3://") {
        return Some(json!({ "s3Location": { "uri": url } }));
    }
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    if !head.ends_with(";base64") {
        return None;
    }
    let whole = !data.is_empty() && BASE64_STANDARD.decode(data).is_ok();
    whole.then(|| json!({ "bytes": data }))
}

fn image_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "image/png" => Some("png"),
        "image/jpeg" | "image/jpg" => Some("jpeg"),
        "image/gif" => Some("gif"),
        "image/webp" => Some("webp"),
        _ => None,
    }
}

fn document_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "application/pdf" => Some("pdf"),
        "text/csv" => Some("csv"),
        "text/html" => Some("html"),
        "text/markdown" => Some("md"),
        "text/plain" => Some("txt"),
        "application/msword" => Some("doc"),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => Some("docx"),
        "application/vnd.ms-excel" => Some("xls"),
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => Some("xlsx"),
        _ => None,
    }
}
