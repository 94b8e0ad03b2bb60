//! Indexing, one slice at a time: each is a short transaction, and whoever
//! comes next goes on behind it.

use toolyard_models::embed::Purpose;
use toolyard_protocol::TenantId;
use toolyard_store::StoreError;
use toolyard_store::knowledge::{self, Document, DocumentStatus};

use super::{Embedder, Knowledge, cut};

/// Pieces of one transaction. Each is two small inserts, so the writer is free
/// again after a few milliseconds.
const SLICE: usize = 16;

/// What a look for work brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worked {
    /// There may be more.
    Some,
    Nothing,
    /// The vendor of vectors is away: rest before the next try.
    Tired,
}

impl Knowledge {
    /// Tells the database which model makes vectors here, at start.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let model = self.embedder.as_ref().map(Embedder::name);
        self.store
            .write(move |tx| Box::pin(async move { knowledge::choose_model(tx, model.as_deref()).await }))
            .await
    }

    /// Does the next slice of work, if there is any.
    pub async fn work(&self) -> Result<Worked, StoreError> {
        if let Some((tenant, document)) = self.next(DocumentStatus::Indexing).await? {
            self.cut(tenant, document).await?;
            return Ok(Worked::Some);
        }
        let Some(embedder) = &self.embedder else { return Ok(Worked::Nothing) };
        match self.next(DocumentStatus::Embedding).await? {
            Some((tenant, document)) => self.embed(embedder, tenant, document).await,
            None => Ok(Worked::Nothing),
        }
    }

    async fn next(&self, status: DocumentStatus) -> Result<Option<(TenantId, Document)>, StoreError> {
        self.store.read(move |tx| Box::pin(async move { knowledge::next_work(tx, status).await })).await
    }

    async fn cut(&self, tenant: TenantId, document: Document) -> Result<(), StoreError> {
        let (t, id) = (tenant.clone(), document.id.clone());
        let text: Option<String> =
            self.store.read(move |tx| Box::pin(async move { knowledge::text(tx, &t, &id).await })).await?;
        let text = text.unwrap_or_default();
        let from = usize::try_from(document.done_bytes).unwrap_or(usize::MAX);
        let (chunks, at) = cut::pieces(&text, from, SLICE);
        let status = match (at >= text.len(), &self.embedder) {
            (false, _) => DocumentStatus::Indexing,
            (true, Some(_)) => DocumentStatus::Embedding,
            (true, None) => DocumentStatus::Ready,
        };
        let done = i64::try_from(at).unwrap_or(i64::MAX);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    // False: another node was quicker, and its slice is there.
                    knowledge::add_chunks(tx, &tenant, &document, &chunks, done, status).await.map(drop)
                })
            })
            .await
    }

    async fn embed(
        &self,
        embedder: &Embedder,
        tenant: TenantId,
        document: Document,
    ) -> Result<Worked, StoreError> {
        let model = embedder.name();
        let (t, id, m) = (tenant.clone(), document.id.clone(), model.clone());
        let most = u32::try_from(SLICE).unwrap_or(1);
        let bare: Vec<(i64, String)> = self
            .store
            .read(move |tx| Box::pin(async move { knowledge::without_vector(tx, &t, &id, &m, most).await }))
            .await?;
        let (rows, texts): (Vec<i64>, Vec<String>) = bare.into_iter().unzip();
        let vectors = match texts.is_empty() {
            true => Ok(Vec::new()),
            false => embedder.vectors(texts, Purpose::Document).await,
        };
        let worked = if vectors.is_ok() { Worked::Some } else { Worked::Tired };
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let vectors = match vectors {
                        Ok(vectors) => vectors,
                        Err(why) => {
                            tracing::warn!(document = %document.id, %why, "a document has no vectors yet");
                            let told = "The embedding model does not answer; words can be searched";
                            return knowledge::note(tx, &tenant, &document.id, told).await;
                        }
                    };
                    for (row, vector) in rows.into_iter().zip(vectors) {
                        knowledge::put_vector(tx, &tenant, row, &model, &vector).await?;
                    }
                    knowledge::count_vectors(tx, &tenant, &document.id, &model).await
                })
            })
            .await?;
        Ok(worked)
    }
}
