//! One hop after a redirect: where to, with which verb, and what must not
//! come along.

use http::{Method, StatusCode};
use url::Url;

use crate::error::EgressError;

/// What the next request is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) url: Url,
    pub(crate) method: Method,
    pub(crate) keeps_body: bool,
    /// Another origin: nothing that the caller wrote goes there.
    pub(crate) stranger: bool,
}

/// Reads a redirect; none if the answer is no redirect.
pub(crate) fn next(
    from: &Url,
    method: &Method,
    status: StatusCode,
    location: Option<&[u8]>,
    has_body: bool,
) -> Result<Option<Hop>, EgressError> {
    let (method, keeps_body) = match status.as_u16() {
        301 | 302 if *method == Method::POST => (Method::GET, false),
        301 | 302 | 307 | 308 => (method.clone(), has_body),
        303 => (Method::GET, false),
        _ => return Ok(None),
    };
    let Some(location) = location else { return Ok(None) };
    let unreadable = EgressError::Refused("the address redirects to something that is not a URL");
    let Ok(text) = std::str::from_utf8(location) else { return Err(unreadable) };
    if text.chars().any(|c| c.is_control() || c == '\\') {
        return Err(unreadable);
    }
    let Ok(mut url) = from.join(text.trim()) else { return Err(unreadable) };
    url.set_fragment(None);
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err(EgressError::Refused("the address redirects from https to http"));
    }
    let stranger = url.origin() != from.origin();
    // The body may hold what the caller trusts only the first host with.
    if stranger && (keeps_body || !matches!(method, Method::GET | Method::HEAD)) {
        return Err(EgressError::Refused(
            "the address redirects a request that changes things to another host",
        ));
    }
    Ok(Some(Hop { url, method, keeps_body, stranger }))
}
