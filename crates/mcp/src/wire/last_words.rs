//! What a program wrote to its error output, at the end: the reason why it
//! died, in its own words, without our secrets in it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt};
use toolyard_protocol::limits;

/// Bytes that are kept; errors show the last [`limits::MCP_STDERR_BYTES`].
const KEPT: usize = 64 << 10;
/// Values shorter than this are words, not secrets.
const SECRET: usize = 6;

/// The end of a program's error output.
#[derive(Clone, Default)]
pub(crate) struct LastWords {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    secrets: Arc<[SecretString]>,
}

impl LastWords {
    pub(crate) fn new(secrets: impl Iterator<Item = SecretString>) -> Self {
        let secrets = secrets.filter(|s| s.expose_secret().len() >= SECRET).collect();
        Self { bytes: Arc::default(), secrets }
    }

    /// Reads until the program closes its error output.
    pub(crate) async fn listen(self, mut from: impl AsyncRead + Unpin) {
        let mut piece = [0; 4096];
        while let Ok(n) = from.read(&mut piece).await
            && n > 0
        {
            let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.extend(&piece[..n]);
            let extra = bytes.len().saturating_sub(KEPT);
            bytes.drain(..extra);
        }
    }

    /// The last lines, on one line, without secrets and control characters.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = {
            let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.iter().copied().collect()
        };
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        // Secrets go before the cut: half a secret would not be found.
        for secret in self.secrets.iter() {
            text = text.replace(secret.expose_secret(), "[hidden]");
        }
        let text = hide_bearers(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let text = toolyard_schema::clean(&lines.join(" | "), usize::MAX).text;
        let start = text.len().saturating_sub(limits::MCP_STDERR_BYTES);
        let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        text[start..].to_owned()
    }
}

/// A token behind `Bearer ` is a secret wherever it came from.
fn hide_bearers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("Bearer ") {
        let (before, after) = rest.split_at(at + "Bearer ".len());
        out.push_str(before);
        let end =
            after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',')).unwrap_or(after.len());
        if end > 0 {
            out.push_str("[hidden]");
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn secrets_are_hidden_and_the_end_is_kept() {
        let words = LastWords::new(["s3cret-value", "no"].into_iter().map(SecretString::from));
        let long = "x".repeat(100_000);
        let said = format!("{long}\nkey s3cret-value no\nAuthorization: Bearer abc.def\n\u{1b}[31mend\n");
        words.clone().listen(said.as_bytes()).await;
        let text = words.text();
        assert!(text.ends_with("key [hidden] no | Authorization: Bearer [hidden] | [31mend"));
        assert!(text.len() <= limits::MCP_STDERR_BYTES);
    }
}
