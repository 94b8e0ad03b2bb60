//! Origins of web pages, and patterns for them with a free port.

/// An allowed origin: `https://app.example`, `http://localhost:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    scheme: String,
    host: String,
    port: Port,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    Any,
    Usual,
    Exactly(u16),
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = split_scheme(text)?;
        let (host, port) = split_port(rest)?;
        let port = match port {
            None => Port::Usual,
            Some("*") => Port::Any,
            Some(number) => Port::Exactly(number.parse().ok()?),
        };
        Some(Self { scheme: scheme.to_ascii_lowercase(), host: host.to_ascii_lowercase(), port })
    }

    pub(crate) fn allows(&self, origin: &str) -> bool {
        let Some(asked) = Self::parse(origin) else { return false };
        let port = match (self.port, asked.port) {
            (_, Port::Any) => false,
            (Port::Any, Port::Usual | Port::Exactly(_)) => true,
            (mine, theirs) => mine == theirs,
        };
        port && self.scheme == asked.scheme && self.host == asked.host
    }
}

/// Scheme and the rest. Userinfo, paths and queries make it no origin.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let fine = matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https")
        && !rest.is_empty()
        && !rest.contains(['/', '@', '?', '#', ' ', '\\', ',', ';', '\'', '"']);
    fine.then_some((scheme, rest))
}

/// Host and port of `host:port`, where a host may be `[::1]`.
pub(crate) fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    let end = if text.starts_with('[') { text.find(']')? + 1 } else { text.find(':').unwrap_or(text.len()) };
    let (host, rest) = text.split_at(end);
    match rest {
        "" => Some((host, None)),
        _ => rest.strip_prefix(':').filter(|port| !port.is_empty()).map(|port| (host, Some(port))),
    }
    .filter(|(host, _)| !host.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_pattern_allows_its_own_scheme_host_and_port_only() {
        let local = Pattern::parse("http://localhost:*").unwrap();
        assert!(local.allows("http://localhost:3000"));
        assert!(local.allows("http://LOCALHOST"));
        for other in [
            "https://localhost:3000",
            "http://localhost.evil.example",
            "http://evil.example#localhost",
            "http://localhost@evil.example",
            "http://localhost:3000/path",
            "http://localhost:*",
            "null",
            "",
        ] {
            assert!(!local.allows(other), "{other}");
        }
        let app = Pattern::parse("https://app.example").unwrap();
        assert!(app.allows("https://app.example"));
        assert!(!app.allows("https://app.example:444"));
        assert!(Pattern::parse("http://[::1]:8787").unwrap().allows("http://[::1]:8787"));
        assert_eq!(Pattern::parse("*"), None);
    }
}
