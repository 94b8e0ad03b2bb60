//! The rules of the guarded door: where a URL that is not the operator's may
//! lead. Nothing here touches the network.

use std::fmt;

use url::{Host, Url};

use crate::address::is_public;
use crate::error::EgressError;
use crate::target::Target;

/// Ends of names that only ever mean something inside a network.
const INSIDE: [&str; 7] = ["localhost", "local", "internal", "intranet", "lan", "home.arpa", "localdomain"];

/// Hosts that the operator opened although they are inside: `127.0.0.1:9000`,
/// `127.0.0.1`, `db.internal`, `[::1]:80`. Without a port, every port is meant.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Opened(Vec<(Host<String>, Option<u16>)>);

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(host, _)| host.to_string())).finish()
    }
}

impl Opened {
    /// Reads the operator's list. The error names the entry that is none.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, String> {
        let read = |entry: &S| {
            let entry = entry.as_ref().trim();
            one(entry).ok_or_else(|| {
                format!("{entry:?} is not a host or host:port such as 127.0.0.1:9000, db.internal or [::1]")
            })
        };
        entries.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    fn has(&self, host: &Host<String>, port: u16) -> bool {
        self.0.iter().any(|(h, p)| h == host && p.is_none_or(|p| p == port))
    }
}

/// The only hosts that a caller may reach: `api.example.com`, which means the
/// usual port, or `api.example.com:8443`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Only(Vec<(Host<String>, Option<u16>)>);

impl fmt::Debug for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(host, _)| host.to_string())).finish()
    }
}

impl Only {
    /// Reads the list. The error names the entry that is none.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, String> {
        Opened::parse(entries).map(|opened| Self(opened.0))
    }

    /// Refuses an address whose host is not on the list.
    pub(crate) fn check(&self, url: &Url) -> Result<(), EgressError> {
        let host = url.host().map(|host| plain(&host.to_owned()));
        // The parser leaves out a port that is the usual one.
        let listed = self.0.iter().any(|(one, port)| host.as_ref() == Some(one) && is_port(url, *port));
        if listed {
            Ok(())
        } else {
            Err(EgressError::Refused("the address is not one of the hosts asked for"))
        }
    }
}

fn is_port(url: &Url, port: Option<u16>) -> bool {
    match port {
        None => url.port().is_none(),
        Some(port) => url.port_or_known_default() == Some(port),
    }
}

fn one(entry: &str) -> Option<(Host<String>, Option<u16>)> {
    if entry.is_empty() || entry.contains(['/', '@', '?', '#', '*', '\\']) {
        return None;
    }
    let bare: Option<std::net::Ipv6Addr> = entry.parse().ok();
    if let Some(ip) = bare {
        return Some((Host::Ipv6(ip), None));
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok().filter(|p| *p != 0)?)),
        _ => (entry, None),
    };
    Some((plain(&Host::parse(host).ok()?), port))
}

/// How a hop was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The operator opened this host: its addresses are not looked at.
    Opened,
    /// Every address of the host must be public.
    Public,
}

impl Leave {
    /// May a redirect lead from here to there? What the operator opened is for
    /// addresses that somebody configured: a host outside cannot send us there.
    pub(crate) fn may_lead_to(self, next: Self) -> bool {
        !(self == Self::Public && next == Self::Opened)
    }
}

/// Reads a URL from a stranger: its form and its host, without asking for the
/// host's addresses.
pub(crate) fn read(text: &str, opened: &Opened) -> Result<Target, EgressError> {
    // URL parsers repair these silently, each in their own way.
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(EgressError::Refused(
            "the address must not contain spaces, control characters or backslashes",
        ));
    }
    let target = Target::parse(text)?;
    leave(target.url(), opened)?;
    Ok(target)
}

/// Decides about one hop.
pub(crate) fn leave(url: &Url, opened: &Opened) -> Result<Leave, EgressError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EgressError::Refused("the address must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EgressError::Refused("the address must not contain a user name or password"));
    }
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(EgressError::Refused("the address has no host"));
    };
    if port == 0 {
        return Err(EgressError::Refused("the address has no usable port"));
    }
    let host = plain(&host.to_owned());
    if opened.has(&host, port) {
        return Ok(Leave::Opened);
    }
    let fine = match &host {
        Host::Ipv4(ip) => is_public((*ip).into()),
        Host::Ipv6(ip) => is_public((*ip).into()),
        Host::Domain(name) => is_outside(name),
    };
    if fine { Ok(Leave::Public) } else { Err(EgressError::Inside) }
}

/// A name without its last dot. Two spellings of one host are one host.
fn plain(host: &Host<String>) -> Host<String> {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()),
        Host::Ipv4(ip) => Host::Ipv4(*ip),
        Host::Ipv6(ip) => ip.to_ipv4_mapped().map_or(Host::Ipv6(*ip), Host::Ipv4),
    }
}

/// A name with a dot that is not reserved for the inside. A bare word is
/// completed by the machine's own search list.
fn is_outside(name: &str) -> bool {
    let below = |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    name.contains('.') && !INSIDE.iter().any(|end| below(end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn x10_a_host_outside_cannot_redirect_to_what_the_operator_opened() {
        assert!(!Leave::Public.may_lead_to(Leave::Opened));
        assert!(Leave::Public.may_lead_to(Leave::Public));
        assert!(Leave::Opened.may_lead_to(Leave::Opened));
        assert!(Leave::Opened.may_lead_to(Leave::Public));
    }

    #[test]
    fn what_the_operator_opened_is_read_in_every_spelling() {
        let opened = Opened::parse(&["127.0.0.1:9000", "DB.Internal.", "[::1]:80", "fd00::1"]).unwrap();
        let leave = |text: &str| leave(&Url::parse(text).unwrap(), &opened);
        for fine in [
            "http://127.0.0.1:9000/",
            "http://0x7f.1:9000/",
            "http://[::ffff:127.0.0.1]:9000/",
            "https://db.internal:5/",
            "http://db.internal./",
            "http://[::1]/",
            "http://[fd00::1]:77/",
        ] {
            assert_eq!(leave(fine).unwrap(), Leave::Opened, "{fine}");
        }
        for inside in
            ["http://127.0.0.1/", "http://127.0.0.1:9001/", "http://[::1]:81/", "http://a.db.internal/"]
        {
            assert!(matches!(leave(inside), Err(EgressError::Inside)), "{inside}");
        }
        for bad in
            ["", "http://a/", "a b", "*.internal", "127.0.0.1:0", "127.0.0.1:99999", "u@h", "10.0.0.0/8"]
        {
            assert!(Opened::parse(&[bad]).unwrap_err().contains("is not a host"), "{bad}");
        }
    }
}
