//! What `${secret.NAME}` and `${env.NAME}` stand for, at the moment of a call.
//! A value leaves this room only inside a [`SecretString`].

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use toolyard_protocol::{SecretName, TenantId};
use toolyard_store::{Store, StoreError, secrets};

use crate::sealer::{Closed, Purpose, Sealer};
use crate::template::{self, Piece, Reference};

/// Why a reference has no value. The texts name the reference, never a value.
#[derive(Debug, thiserror::Error)]
pub enum NoSecret {
    #[error("{0} is not set")]
    Missing(Reference),
    #[error("{0} is not on the operator's list (env.allow), or this tenant may not use it")]
    NotAllowed(Reference),
    #[error("{0} cannot be read: {1}")]
    Closed(Reference, Closed),
    #[error("the reference cannot be read: {0}")]
    Malformed(String),
    #[error("secrets cannot be read at the moment")]
    Store(#[source] StoreError),
}

/// Reads a variable of the environment.
type ReadEnv = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The secrets of all tenants. Cheap to clone.
#[derive(Clone)]
pub struct Secrets {
    store: Arc<Store>,
    sealer: Arc<Sealer>,
    allowed: Arc<BTreeSet<String>>,
    env: Arc<ReadEnv>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("sealer", &self.sealer).finish_non_exhaustive()
    }
}

impl Secrets {
    /// `allowed` names the variables of the environment that configurations of
    /// the operator's own tenant may use.
    pub fn new(store: Arc<Store>, sealer: Arc<Sealer>, allowed: &[String]) -> Self {
        let env = Arc::new(|name: &str| std::env::var(name).ok());
        Self { store, sealer, allowed: Arc::new(allowed.iter().cloned().collect()), env }
    }

    /// The same with another environment.
    pub fn with_env(self, read: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { env: Arc::new(read), ..self }
    }

    pub fn sealer(&self) -> &Arc<Sealer> {
        &self.sealer
    }

    /// A text with its references replaced. `{{…}}` stays as it is.
    pub async fn resolve(&self, tenant: &TenantId, text: &str) -> Result<SecretString, NoSecret> {
        let mut out = String::new();
        for piece in template::parse(text).map_err(NoSecret::Malformed)? {
            match piece {
                Piece::Text(text) => out.push_str(&text),
                Piece::Input(name) => out.push_str(&format!("{{{{{name}}}}}")),
                Piece::Reference(reference) => {
                    out.push_str(self.read(tenant, &reference).await?.expose_secret());
                }
            }
        }
        Ok(out.into())
    }

    /// The value of one reference.
    pub async fn read(&self, tenant: &TenantId, reference: &Reference) -> Result<SecretString, NoSecret> {
        match reference {
            Reference::Env(name) => self.variable(tenant, name, reference),
            Reference::Secret(name) => {
                let (asked, named) = (tenant.clone(), name.clone());
                let found = self
                    .store
                    .read::<_, StoreError, _>(move |tx| {
                        Box::pin(async move { secrets::get(tx, &asked, &named).await })
                    })
                    .await
                    .map_err(NoSecret::Store)?;
                let sealed = found.ok_or_else(|| NoSecret::Missing(reference.clone()))?;
                self.sealer
                    .open(Purpose::Secret, tenant, name.as_str(), &sealed)
                    .map_err(|why| NoSecret::Closed(reference.clone(), why))
            }
        }
    }

    /// The environment is the operator's: another tenant could send it to
    /// itself by a tool of its own.
    fn variable(
        &self,
        tenant: &TenantId,
        name: &SecretName,
        reference: &Reference,
    ) -> Result<SecretString, NoSecret> {
        if *tenant != TenantId::default_tenant() || !self.allowed.contains(name.as_str()) {
            return Err(NoSecret::NotAllowed(reference.clone()));
        }
        let value = (self.env)(name.as_str()).filter(|value| !value.is_empty());
        value.map(SecretString::from).ok_or_else(|| NoSecret::Missing(reference.clone()))
    }
}
