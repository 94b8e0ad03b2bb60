//! `<data>/gateway.json` tells the command line that a gateway runs, and where.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Presence {
    pub(crate) address: SocketAddr,
    pub(crate) url: String,
    pub(crate) pid: u32,
}

/// Removes the file when the gateway stops.
#[derive(Debug)]
pub(crate) struct Announced(PathBuf);

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn file(data: &Path) -> PathBuf {
    data.join("gateway.json")
}

/// How this machine reaches an address that may mean "all of mine".
pub(crate) fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

pub(crate) fn url(bound: SocketAddr) -> String {
    format!("http://{}", reachable(bound))
}

pub(crate) fn announce(data: &Path, bound: SocketAddr) -> Announced {
    let presence = Presence { address: bound, url: url(bound), pid: std::process::id() };
    let path = file(data);
    let part = path.with_extension("json.new");
    let text = serde_json::to_string(&presence).unwrap_or_default();
    // Readers see the whole file or none.
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path));
    if let Err(error) = written {
        tracing::warn!(%error, "the command line will not find this gateway by itself");
    }
    Announced(path)
}

/// The gateway that says it runs on this data folder. It may have been killed.
pub(crate) fn read(data: &Path) -> Option<Presence> {
    serde_json::from_str(&std::fs::read_to_string(file(data)).ok()?).ok()
}
