//! Where a request stands in its caller's trace: the W3C header `traceparent`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A trace, and the span in it that the work belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
#[ts(type = "string")]
pub struct TraceParent {
    trace: String,
    span: String,
}

impl TraceParent {
    /// Reads a header. One that is out of form is as good as none: whoever
    /// sends it must not break a request by it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let hex = |text: &str, signs: usize| {
            text.len() == signs && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let known = |text: &str, signs| hex(text, signs) && text.bytes().any(|b| b != b'0');
        // Later versions may add fields; this one has four.
        let fits = hex(version, 2) && version != "ff" && (version != "00" || fields.next().is_none());
        let fine = fits && known(trace, 32) && known(span, 16) && hex(flags, 2);
        fine.then(|| Self { trace: trace.to_owned(), span: span.to_owned() })
    }

    /// A span of ours, for whoever works for it.
    pub fn new(trace: &str, span: &str) -> Option<Self> {
        Self::parse(&format!("00-{trace}-{span}-01"))
    }

    /// 32 signs.
    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// 16 signs.
    pub fn span(&self) -> &str {
        &self.span
    }
}

impl fmt::Display for TraceParent {
    /// As the header says it. What passes here is recorded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace, self.span)
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.to_string()
    }
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("is no traceparent")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FINE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_of_the_standard_is_read_and_written() {
        let read = TraceParent::parse(FINE).unwrap();
        assert_eq!(read.trace(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(read.span(), "00f067aa0ba902b7");
        assert_eq!(read.to_string(), FINE);
        assert_eq!(TraceParent::new(read.trace(), read.span()), Some(read.clone()));
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what-comes";
        assert_eq!(TraceParent::parse(later), Some(read));
    }

    #[test]
    fn a_header_out_of_form_is_none() {
        let zero = "0".repeat(32);
        for bad in [
            "",
            "00",
            "hello",
            &FINE.to_uppercase(),
            &FINE[..54],
            &format!("{FINE}-more"),
            &FINE.replacen("00", "ff", 1),
            &FINE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zero),
            &FINE.replace("00f067aa0ba902b7", &zero[..16]),
            &FINE.replace('4', "é"),
            &"-".repeat(70_000),
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad:.80}");
        }
    }
}
