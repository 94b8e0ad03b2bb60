//! Versions of both sides (row H68). A client library says what it is in
//! `x-toolyard-sdk: name/version`; every answer says what the gateway is, and
//! warns a library that may ask for what this release does not have.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Of this gateway.
const OURS: &str = env!("CARGO_PKG_VERSION");

pub(crate) const SDK: HeaderName = HeaderName::from_static("x-toolyard-sdk");
pub(crate) const VERSION: HeaderName = HeaderName::from_static("x-toolyard-version");
pub(crate) const WARNING: HeaderName = HeaderName::from_static("x-toolyard-warning");

/// What a request's library should hear, if anything.
pub(crate) fn warning(request: &HeaderMap) -> Option<String> {
    let sdk = request.get(SDK)?.to_str().ok().filter(|text| is_plain(text));
    let Some((name, version)) = sdk.and_then(|text| text.split_once('/')) else {
        return Some("x-toolyard-sdk cannot be read: write name/version".to_owned());
    };
    let Some(theirs) = line(version) else {
        return Some(format!("x-toolyard-sdk: {version} is not a version"));
    };
    let newer = line(OURS).is_some_and(|ours| theirs > ours);
    newer.then(|| format!("this gateway is {OURS}: {name} {version} may ask for what it does not have"))
}

/// Adds to an answer what the caller hears of versions. A warning of the
/// route itself stays beside it.
pub(crate) fn stamp(answer: &mut HeaderMap, warning: Option<&str>) {
    answer.insert(VERSION, HeaderValue::from_static(OURS));
    if let Some(warning) = warning {
        warn(answer, warning);
    }
}

/// Adds a warning to an answer. What a header cannot carry is left out.
pub(crate) fn warn(answer: &mut HeaderMap, text: &str) {
    let plain: String = text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(512).collect();
    if let Ok(value) = HeaderValue::from_str(&plain) {
        answer.append(WARNING, value);
    }
}

fn is_plain(text: &str) -> bool {
    text.len() <= 64 && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-+".contains(c))
}

/// The part of a version that changes when something new can be asked for: the
/// first number, or the first two before 1.0.
fn line(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().ok());
    let (major, minor) = (numbers.next()??, numbers.next()??);
    Some((major, if major == 0 { minor } else { 0 }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(sdk: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(SDK, HeaderValue::from_str(sdk).unwrap());
        warning(&headers)
    }

    #[test]
    fn h68_a_newer_or_unreadable_library_is_warned_and_no_other() {
        assert_eq!(warning(&HeaderMap::new()), None);
        for fine in [format!("client-rs/{OURS}"), "client-ts/0.0.1".to_owned(), "x/0.1.99-beta.2".to_owned()]
        {
            assert_eq!(of(&fine), None, "{fine}");
        }
        for newer in ["client-rs/9.0.0", "client-ts/0.99.0"] {
            assert!(of(newer).unwrap().contains("may ask for"), "{newer}");
        }
        for odd in ["client", "client/x", "client/1", "a/b/c", "client/1.0.0 <script>"] {
            assert!(of(odd).unwrap().starts_with("x-toolyard-sdk"), "{odd}");
        }
    }
}
