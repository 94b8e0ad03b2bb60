//! Where a reader left off.

use toolyard_protocol::ErrorCode;

use crate::http::Refusal;
use crate::routes::call::Call;

/// The position of `Last-Event-ID`, `?afterSeq` or `?since`; zero if none is
/// given. Garbage is refused: a silent start from zero would look like a gap.
pub(crate) fn cursor(call: &Call) -> Result<i64, Refusal> {
    match given(call, &["afterSeq", "since"]) {
        None => Ok(0),
        Some(text) => parse(text).ok_or_else(|| {
            Refusal::new(ErrorCode::InvalidCursor, "The position must be a whole number, as streams give it")
        }),
    }
}

/// The position as it was given, in the header or in one of these parameters.
pub(super) fn given<'a>(call: &'a Call, names: &[&str]) -> Option<&'a str> {
    let header = call.headers.get("last-event-id").map(|v| v.to_str().unwrap_or("?"));
    let query = names.iter().find_map(|name| call.query.get(*name).map(String::as_str));
    // A browser that reconnects repeats the query of its first request.
    header.filter(|text| !text.is_empty()).or(query)
}

pub(super) fn parse(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_only_positions_are_positions() {
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse("17"), Some(17));
        for garbage in ["", "-1", "+1", "1.5", "abc", "1 ", "0x10", "9999999999999999999"] {
            assert_eq!(parse(garbage), None, "{garbage}");
        }
    }
}
