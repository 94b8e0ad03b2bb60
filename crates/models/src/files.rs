//! Files of a conversation, by how they can travel.

/// Where the bytes of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileBody<'a> {
    /// Inside the request, as base64.
    Inline { media_type: &'a str, base64: &'a str },
    /// The vendor fetches them.
    Address(&'a str),
    /// Not within a model's reach.
    Nowhere,
}

/// Reads a part's address. A `data:` address may name its own type.
pub(crate) fn body_of<'a>(media_type: &'a str, url: Option<&'a str>) -> FileBody<'a> {
    let Some(url) = url else { return FileBody::Nowhere };
    let Some(rest) = url.strip_prefix("data:") else { return FileBody::Address(url) };
    match rest.split_once(";base64,") {
        None => FileBody::Nowhere,
        Some((told, base64)) => {
            let told = told.split(';').next().unwrap_or_default();
            FileBody::Inline { media_type: if told.is_empty() { media_type } else { told }, base64 }
        }
    }
}

/// What a model reads in place of a file that it cannot take.
pub(crate) fn in_words(media_type: &str, name: Option<&str>, url: Option<&str>) -> String {
    let name = name.unwrap_or("file");
    match url.filter(|url| !url.starts_with("data:")) {
        Some(url) => format!("[file {name} ({media_type}): {url}]"),
        None => format!("[file {name} ({media_type}) is not readable here]"),
    }
}
