//! The knowledge base: documents come in as text, are cut into pieces and
//! indexed in slices, and agents search them by words and, if a model makes
//! vectors, by meaning.

mod cut;
mod extract;
mod index;
mod rank;

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_models::embed::{Embed, EmbedRequest, Purpose};
use toolyard_protocol::{SpaceId, TenantId, limits};
use toolyard_store::knowledge::{self, Hit};
use toolyard_store::{Store, StoreError};

pub use extract::{Form, text_of};
pub use index::Worked;

use crate::prebuilt::seat;
use crate::{CallContext, ToolFailure};

/// Candidates of each kind that are ranked together.
const CANDIDATES: u32 = 50;
/// Vectors that are compared between two looks at the database.
const PAGE: u32 = 1_000;
/// Words of a question that are looked for.
const WORDS: usize = 32;
/// Passages if the caller does not say.
const PASSAGES: usize = 5;

/// Who makes vectors.
#[derive(Debug, Clone)]
pub struct Embedder {
    pub provider: Arc<dyn Embed>,
    /// The model's name at its vendor.
    pub model: String,
}

impl Embedder {
    /// Vectors of another name cannot be compared.
    fn name(&self) -> String {
        format!("{}/{}", self.provider.provider(), self.model)
    }

    async fn vectors(&self, texts: Vec<String>, purpose: Purpose) -> Result<Vec<Vec<u8>>, String> {
        let wanted = texts.len();
        let request = EmbedRequest { model: self.model.clone(), texts, dimensions: None, purpose };
        let embedded = self.provider.embed(request).await.map_err(|e| e.to_string())?;
        if embedded.vectors.len() != wanted {
            return Err(format!(
                "{} answered {} vectors for {wanted} texts",
                self.name(),
                embedded.vectors.len()
            ));
        }
        Ok(embedded.vectors.iter().map(|vector| rank::pack(vector)).collect())
    }
}

/// The documents of one database.
#[derive(Debug)]
pub struct Knowledge {
    store: Arc<Store>,
    embedder: Option<Embedder>,
}

/// What a search brought, and how.
struct Found {
    hits: Vec<(Hit, f64)>,
    /// Why nothing was found by meaning although it was looked for.
    trouble: Option<String>,
}

impl Knowledge {
    pub fn new(store: Arc<Store>, embedder: Option<Embedder>) -> Self {
        Self { store, embedder }
    }

    /// Runs a call of `searchKnowledge`.
    pub(crate) async fn call(&self, args: &Value, caller: &CallContext) -> Result<Value, ToolFailure> {
        let query = args.get("query").and_then(Value::as_str).unwrap_or_default().trim();
        let count = query.chars().count();
        if count == 0 || count > limits::SEARCH_CHARS {
            let text = format!("query must have 1 to {} characters", limits::SEARCH_CHARS);
            return Err(ToolFailure::TellModel(text));
        }
        let limit = args.get("limit").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let limit = limit.unwrap_or(PASSAGES).clamp(1, limits::SEARCH_RESULTS);
        let found = self.search(caller, query, limit).await.map_err(|e| {
            tracing::warn!(error = %e, "a search of the knowledge base failed");
            ToolFailure::TellModel("The knowledge base cannot be searched right now".to_owned())
        })?;
        let results: Vec<Value> = found.hits.iter().map(|(hit, score)| shown(hit, *score)).collect();
        let mut answer = json!({"success": true, "total": results.len(), "results": results});
        if let Some(why) = found.trouble {
            answer["note"] = json!(format!("Searched by words only: {why}"));
        }
        Ok(answer)
    }

    async fn search(&self, caller: &CallContext, query: &str, limit: usize) -> Result<Found, StoreError> {
        let words = words(query);
        let asked = caller.clone();
        let by_words = self.store.read(move |tx| {
            Box::pin(async move {
                let space = seat(tx, &asked).await?;
                let hits = knowledge::search(tx, &asked.tenant, space.as_ref(), &words, CANDIDATES).await?;
                Ok::<_, StoreError>((space, hits))
            })
        });
        let (space, by_words) = by_words.await?;
        let (by_meaning, trouble) = match self.by_meaning(&caller.tenant, space.as_ref(), query).await? {
            Ok(rows) => (rows, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let fused = rank::fuse(&[by_words.iter().map(|hit| hit.row).collect(), by_meaning], limit);
        let rows: Vec<i64> = fused.iter().map(|(row, _)| *row).collect();
        let tenant = caller.tenant.clone();
        // What may be read is asked again here, for both ways of finding.
        let hits = self.store.read(move |tx| {
            Box::pin(async move { knowledge::hits(tx, &tenant, space.as_ref(), &rows).await })
        });
        let hits: Vec<Hit> = hits.await?;
        let score = |row: i64| fused.iter().find(|(known, _)| *known == row).map_or(0.0, |(_, score)| *score);
        Ok(Found {
            hits: hits.into_iter().map(|hit| (score(hit.row), hit)).map(|(s, h)| (h, s)).collect(),
            trouble,
        })
    }

    /// The nearest pieces, the nearest first. A vendor that is away costs the
    /// meaning, not the search.
    async fn by_meaning(
        &self,
        tenant: &TenantId,
        space: Option<&SpaceId>,
        query: &str,
    ) -> Result<Result<Vec<i64>, String>, StoreError> {
        let Some(embedder) = &self.embedder else { return Ok(Ok(Vec::new())) };
        let asked = match embedder.vectors(vec![query.to_owned()], Purpose::Query).await {
            Ok(mut vectors) => vectors.pop().unwrap_or_default(),
            Err(why) => {
                tracing::warn!(%why, "a search has no vector");
                return Ok(Err("the embedding model did not answer".to_owned()));
            }
        };
        let mut best: Vec<(f32, i64)> = Vec::new();
        let mut after = 0;
        loop {
            let (tenant, space, model) = (tenant.clone(), space.cloned(), embedder.name());
            let page = self.store.read(move |tx| {
                Box::pin(
                    async move { knowledge::vectors(tx, &tenant, space.as_ref(), &model, after, PAGE).await },
                )
            });
            let page: Vec<(i64, Vec<u8>)> = page.await?;
            let full = page.len() == PAGE as usize;
            after = page.last().map_or(after, |(row, _)| *row);
            best.extend(page.iter().filter_map(|(row, v)| Some((rank::cosine(&asked, v)?, *row))));
            best.retain(|(cosine, _)| *cosine > 0.0);
            best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            best.truncate(CANDIDATES as usize);
            if !full {
                return Ok(Ok(best.into_iter().map(|(_, row)| row).collect()));
            }
        }
    }
}

/// The words of a question, each once.
fn words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        if !words.contains(&word) && words.len() < WORDS {
            words.push(word);
        }
    }
    words
}

/// A passage, with all that a citation needs.
fn shown(hit: &Hit, score: f64) -> Value {
    json!({
        "documentId": hit.document,
        "title": hit.title,
        "position": hit.position,
        "start": hit.start,
        "end": hit.end,
        "text": hit.text,
        "score": score,
    })
}
