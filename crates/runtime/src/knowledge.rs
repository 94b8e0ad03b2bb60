//! Indexes documents in the background, a slice at a time, on whichever node
//! comes first.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use toolyard_models::Registry;
use toolyard_store::{Store, StoreError};
use toolyard_tools::knowledge::{Embedder, Knowledge, Worked};

use crate::runtime::Runtime;
use crate::settings::Settings;

/// How long a vendor of vectors that does not answer is left alone.
const TIRED: Duration = Duration::from_secs(10);

/// The documents and the bell that says there are new ones.
#[derive(Debug)]
pub(crate) struct Library {
    knowledge: Arc<Knowledge>,
    bell: Notify,
}

impl Library {
    pub(crate) async fn open(
        store: &Arc<Store>,
        registry: &Registry,
        settings: &Settings,
    ) -> Result<Self, StoreError> {
        let embedder = settings.embedding.as_ref().and_then(|(provider, model)| {
            let found = registry.providers().embed(provider);
            let found =
                found.inspect_err(|e| tracing::error!(error = %e, "documents get no vectors")).ok()?;
            Some(Embedder { provider: found, model: model.clone() })
        });
        let knowledge = Arc::new(Knowledge::new(store.clone(), embedder));
        knowledge.prepare().await?;
        Ok(Self { knowledge, bell: Notify::new() })
    }

    pub(crate) fn knowledge(&self) -> &Arc<Knowledge> {
        &self.knowledge
    }
}

impl Runtime {
    /// A document was stored: index it now.
    pub fn document_stored(&self) {
        self.library.bell.notify_one();
    }
}

/// Works until the runtime stops. Documents that came in by another node, or
/// before a crash, are found by looking.
pub(crate) async fn run(runtime: Arc<Runtime>) {
    let stop = runtime.stop_token().clone();
    while !stop.is_cancelled() {
        let rest = match runtime.library.knowledge.work().await {
            Ok(Worked::Some) => continue,
            Ok(Worked::Nothing) => runtime.settings.tick,
            Ok(Worked::Tired) => TIRED,
            Err(e) => {
                tracing::warn!(error = %e, "documents cannot be indexed right now");
                runtime.settings.tick
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = runtime.library.bell.notified() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}
