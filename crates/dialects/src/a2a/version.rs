//! Which protocol a request speaks: 1.0 or 0.3.

use super::fault::{Fault, FaultKind};

/// A version of the protocol. Patch numbers are never negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    V03,
    V10,
}

/// The name of the header and of the query parameter that says the version.
pub const VERSION_HEADER: &str = "A2A-Version";

impl Version {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V10 => "1.0",
        }
    }
    /// The header by which a client asks for extensions, and the server
    /// answers which are in use.
    pub const fn extensions_header(self) -> &'static str {
        match self {
            Self::V03 => "X-A2A-Extensions",
            Self::V10 => "A2A-Extensions",
        }
    }

    /// Reads what a request says. Nothing said is 0.3: that version has no header.
    pub fn said(text: Option<&str>) -> Result<Self, Fault> {
        let text = text.map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Ok(Self::V03);
        }
        let mut numbers = text.split('.');
        match (numbers.next(), numbers.next()) {
            (Some("1"), Some("0") | None) => Ok(Self::V10),
            (Some("0"), Some("3")) => Ok(Self::V03),
            _ => Err(unsupported(text)),
        }
    }
}

fn unsupported(text: &str) -> Fault {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(16).collect();
    Fault::new(
        FaultKind::VersionNotSupported,
        format!("A2A version {shown:?} is not supported: this agent speaks 1.0 and 0.3"),
    )
}

/// The version of a JSON-RPC request. The name of the method decides, since
/// the two versions share none; a name of 1.0 must also be said in the header,
/// because a request without one is a request of 0.3.
pub(super) fn of_method(method: &str, said: Option<&str>) -> Result<Version, Fault> {
    if method.contains('/') {
        return Ok(Version::V03);
    }
    match Version::said(said)? {
        Version::V10 => Ok(Version::V10),
        Version::V03 => Err(needs_header(method)),
    }
}

fn needs_header(what: &str) -> Fault {
    let shown: String = what.chars().filter(|c| !c.is_control()).take(64).collect();
    Fault::new(
        FaultKind::VersionNotSupported,
        format!("{shown} is a request of A2A 1.0: send the header {VERSION_HEADER}: 1.0"),
    )
}

/// The version of an HTTP+JSON request. 0.3 has `/v1` before its paths.
pub(super) fn of_path(prefixed: bool, path: &str, said: Option<&str>) -> Result<Version, Fault> {
    match (Version::said(said)?, prefixed) {
        (Version::V10, _) => Ok(Version::V10),
        (Version::V03, true) => Ok(Version::V03),
        (Version::V03, false) => Err(needs_header(path)),
    }
}
