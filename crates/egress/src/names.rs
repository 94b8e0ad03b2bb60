//! Names become addresses once, and the connection goes to exactly those.
//!
//! A check before the connection that asks the name service on its own proves
//! nothing: the next answer may differ. So the check sits inside the lookup
//! that the connection itself uses.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use crate::address::is_public;

/// The addresses of a name.
pub type Found = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Who knows the addresses of names.
pub trait Names: Send + Sync + fmt::Debug {
    fn find(&self, host: &str) -> Found;
}

/// The machine's own name service.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn find(&self, host: &str) -> Found {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A name has an address on the inside. Travels through the HTTP client.
#[derive(Debug, thiserror::Error)]
#[error("the name leads inside")]
pub(crate) struct LeadsInside;

/// Answers all addresses of a name, or none of them.
pub(crate) async fn public(names: &dyn Names, host: &str) -> Result<Vec<IpAddr>, Lookup> {
    let found = names.find(host).await.map_err(Lookup::Unknown)?;
    if found.is_empty() {
        return Err(Lookup::Unknown(io::Error::from(io::ErrorKind::NotFound)));
    }
    if found.iter().all(|ip| is_public(*ip)) { Ok(found) } else { Err(Lookup::Inside) }
}

#[derive(Debug)]
pub(crate) enum Lookup {
    Inside,
    Unknown(io::Error),
}

/// The lookup of one client.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) names: Arc<dyn Names>,
    /// Not for what the operator wrote, and not for hosts that the operator opened.
    pub(crate) public_only: bool,
}

impl Service<Name> for Checked {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { names, public_only } = self.clone();
        Box::pin(async move {
            let found = if public_only {
                public(names.as_ref(), name.as_str()).await.map_err(|e| match e {
                    Lookup::Inside => Self::Error::from(LeadsInside),
                    Lookup::Unknown(e) => e.into(),
                })?
            } else {
                names.find(name.as_str()).await?
            };
            // The port is the connector's business.
            let addresses: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            Ok(addresses.into_iter())
        })
    }
}
