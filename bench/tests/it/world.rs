//! A mock and a bare server inside the test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::net::TcpListener;
use toolyard_bench::floor::{Disk, Yard};
use toolyard_bench::http::Peer;

pub(crate) async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(toolyard_bench::upstream::serve(listener));
    address
}

/// A bare server, with a disk if it gets a folder.
pub(crate) async fn floor(upstream: SocketAddr, folder: Option<&Path>) -> SocketAddr {
    let (disk, left) = match folder {
        Some(folder) => Disk::open(&folder.join("floor.db")).unwrap(),
        None => (Disk::none(), Vec::new()),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(toolyard_bench::floor::serve(listener, Yard::new(upstream, disk, left)));
    address
}

/// Posts and reads the whole answer.
pub(crate) async fn post(peer: &Arc<Peer>, path: &str, body: &str) -> (u16, String) {
    let answer = peer.post(path, Bytes::from(body.to_owned())).await.unwrap();
    let status = answer.status.as_u16();
    (status, String::from_utf8(answer.read_all().await.unwrap()).unwrap())
}

pub(crate) fn peer(address: SocketAddr) -> Arc<Peer> {
    Peer::new(address, HeaderMap::new())
}
