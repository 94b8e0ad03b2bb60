//! Text out of uploaded documents: plain text, Markdown, HTML and PDF.

use std::panic::{AssertUnwindSafe, catch_unwind};

use toolyard_protocol::{ApiError, ErrorCode, limits};

/// Columns at which the text of a page is wrapped: wide, since nobody reads it so.
const WIDTH: usize = 120;

/// What a document is, by its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    Html,
    Pdf,
}

impl Form {
    /// As another process is told.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Html => "html",
            Self::Pdf => "pdf",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Self::Text, Self::Html, Self::Pdf].into_iter().find(|form| form.name() == name)
    }

    /// None if no text can be taken out of it here.
    pub fn of(media_type: &str) -> Option<Self> {
        let plain = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match plain.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "application/pdf" => Some(Self::Pdf),
            "application/json" => Some(Self::Text),
            other if other.starts_with("text/") => Some(Self::Text),
            _ => None,
        }
    }
}

/// The text of a document. Takes a while: not for a thread that others wait on.
pub fn text_of(form: Form, bytes: &[u8]) -> Result<String, ApiError> {
    let unreadable =
        |why: &str| ApiError::new(ErrorCode::UnsupportedMedia, format!("The document cannot be read: {why}"));
    let text = match form {
        Form::Text => std::str::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text"))?.to_owned(),
        Form::Html => html2text::config::plain()
            .no_table_borders()
            .allow_width_overflow()
            .string_from_read(bytes, WIDTH)
            .map_err(|_| unreadable("its HTML is broken"))?,
        // What is broken enough makes the reader panic.
        Form::Pdf => match catch_unwind(AssertUnwindSafe(|| pdf_extract::extract_text_from_mem(bytes))) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) | Err(_) => return Err(unreadable("its PDF is broken or encrypted")),
        },
    };
    // PostgreSQL keeps no NUL.
    let text = text.replace('\0', "").replace("\r\n", "\n");
    if text.trim().is_empty() {
        return Err(unreadable("there is no text in it"));
    }
    let most = limits::DOCUMENT_TEXT_BYTES;
    if text.len() > most {
        let message = format!("The text of the document has {} bytes: the limit is {most}", text.len());
        return Err(ApiError::limit(ErrorCode::BodyTooLarge, most as u64, message));
    }
    Ok(text)
}
