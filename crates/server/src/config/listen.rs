//! `listen`: an address and a port. Whoever writes it otherwise is told the
//! form, with the port that was meant.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// The port of the example where none was given.
const USUAL: u16 = 8787;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    from.deserialize_str(Listen)
}

struct Listen;

impl Visitor<'_> for Listen {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address and a port in quotes, as \"127.0.0.1:8787\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SocketAddr, E> {
        parse(text).map_err(E::custom)
    }
}

fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = match text.rsplit_once(':') {
        _ if text.parse::<IpAddr>().is_ok() => (text, None),
        Some((host, port)) => (host, Some(port)),
        None if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) => ("", Some(text)),
        None => (text, None),
    };
    let number = port.and_then(|port| port.parse::<u16>().ok());
    let why = match (host.trim_matches(['[', ']']).parse::<IpAddr>(), port, number) {
        (_, Some(port), None) => format!("{port:?} is no port: it must be 0 to {}", u16::MAX),
        (Ok(IpAddr::V6(_)), Some(_), _) => "an IPv6 address stands in brackets, as [::1]:8787".to_owned(),
        (Ok(_), ..) => "the port is missing".to_owned(),
        (Err(_), ..) if host.is_empty() => "the address is missing".to_owned(),
        (Err(_), ..) => format!("{host:?} is no IP address, and names are not looked up"),
    };
    let port = number.unwrap_or(USUAL);
    Err(format!(
        "{text:?} is not an address and a port ({why}). Write 127.0.0.1:{port} for this machine alone, or 0.0.0.0:{port} for every network that it is in"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_and_a_port_are_taken_as_they_stand() {
        for fine in ["127.0.0.1:0", "0.0.0.0:8787", "[::1]:65535"] {
            assert_eq!(parse(fine).unwrap().to_string(), fine);
        }
    }

    #[test]
    fn anything_else_is_told_what_is_missing_and_how_to_write_it() {
        for (text, why, example) in [
            ("9872", "the address is missing", "127.0.0.1:9872"),
            (":9872", "the address is missing", "127.0.0.1:9872"),
            ("localhost", "\"localhost\" is no IP address", "127.0.0.1:8787"),
            ("localhost:9872", "\"localhost\" is no IP address", "127.0.0.1:9872"),
            ("127.0.0.1", "the port is missing", "127.0.0.1:8787"),
            ("::1", "the port is missing", "127.0.0.1:8787"),
            ("127.0.0.1:99999", "\"99999\" is no port: it must be 0 to 65535", "127.0.0.1:8787"),
            ("127.0.0.1:", "\"\" is no port", "127.0.0.1:8787"),
            ("99999", "\"99999\" is no port", "127.0.0.1:8787"),
            ("http://127.0.0.1:80", "\"http://127.0.0.1\" is no IP address", "127.0.0.1:80"),
            ("", "the address is missing", "127.0.0.1:8787"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(&format!("{text:?} is not an address and a port ({why}")), "{said}");
            assert!(said.contains(&format!("Write {example} for this machine alone")), "{said}");
        }
    }
}
