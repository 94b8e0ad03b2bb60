//! Texts in, vectors out: what every vendor of embeddings can do.
//!
//! A vendor is a pure `encode` and `decode` of one batch; [`Batched`] cuts a
//! request into batches and puts the vectors together. Vectors have unit
//! length whatever the vendor says, so that their product is their likeness.

#[cfg(feature = "bedrock")]
pub mod bedrock;
pub mod demo;
pub mod gemini;
pub mod openai;

use std::fmt;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use serde_json::Value;
use toolyard_egress::Target;
use toolyard_protocol::run::Usage;

use crate::call_error::CallError;
use crate::error::{Detail, ModelError};
use crate::wire::{Line, Refusal, ask};

/// Texts of one request.
pub const EMBED_TEXTS: usize = 10_000;
/// Bytes of one text.
pub const EMBED_TEXT_BYTES: usize = 256 << 10;
/// Numbers of one vector.
pub const EMBED_DIMENSIONS: usize = 8192;
/// Batches of one request that are on their way at once.
const BATCHES_AT_ONCE: usize = 4;

/// A provider of embeddings.
pub trait Embed: Send + Sync + fmt::Debug {
    /// One vector per text, in order.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embedded, CallError>>;
    /// The name it is configured under.
    fn provider(&self) -> &str;
}

/// Texts to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbedRequest {
    /// The model's name at its vendor.
    pub model: String,
    pub texts: Vec<String>,
    /// Missing means the model's own.
    pub dimensions: Option<u32>,
    pub purpose: Purpose,
}

/// Some models tell the texts that are searched from those that search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    #[default]
    Document,
    Query,
}

/// The vectors of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Embedded {
    pub vectors: Vec<Vec<f32>>,
    pub usage: Usage,
}

impl EmbedRequest {
    /// What no vendor needs to see.
    fn check(&self) -> Result<(), CallError> {
        CallError::check("texts", self.texts.len(), EMBED_TEXTS)?;
        for text in &self.texts {
            CallError::check("bytes of a text", text.len(), EMBED_TEXT_BYTES)?;
            if text.trim().is_empty() {
                return Err(CallError::Empty { what: "a text" });
            }
        }
        let dimensions = self.dimensions.map_or(1, |n| n as usize);
        if dimensions == 0 {
            return Err(CallError::Empty { what: "the number of dimensions" });
        }
        CallError::check("dimensions", dimensions, EMBED_DIMENSIONS)
    }
}

/// One vendor's words for a batch. Pure.
pub trait Batch: Send + Sync + fmt::Debug {
    /// Texts of one batch of this model.
    fn size(&self, model: &str) -> usize;
    fn address(&self, base: &Target, model: &str) -> Result<Target, ModelError>;
    fn encode(&self, batch: &EmbedRequest) -> Result<Value, ModelError>;
    fn decode(&self, answer: Value) -> Result<Embedded, ModelError>;
    fn refused(&self) -> fn(&Refusal) -> ModelError;
}

/// A vendor that is asked batch by batch. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Batched<B> {
    name: String,
    base: Target,
    line: Line,
    words: B,
}

impl<B: Batch> Batched<B> {
    /// `base` is the address above the vendor's paths.
    pub fn over(name: &str, base: &Target, line: Line, words: B) -> Self {
        Self { name: name.to_owned(), base: base.clone(), line, words }
    }

    pub fn with_line(mut self, change: impl FnOnce(&mut Line)) -> Self {
        change(&mut self.line);
        self
    }

    async fn embed_all(&self, request: EmbedRequest) -> Result<Embedded, CallError> {
        request.check()?;
        let target =
            self.words.address(&self.base, &request.model).map_err(|error| error.of_model(&request.model))?;
        let EmbedRequest { model, texts, dimensions, purpose } = request;
        let size = self.words.size(&model).max(1);
        let batches: Vec<EmbedRequest> = texts
            .chunks(size)
            .map(|texts| EmbedRequest { model: model.clone(), texts: texts.to_vec(), dimensions, purpose })
            .collect();
        let answers = futures::stream::iter(batches)
            .map(|batch| self.embed_batch(&target, batch).boxed())
            .buffered(BATCHES_AT_ONCE)
            .try_fold(Embedded::default(), async |mut all, some| {
                all.vectors.extend(some.vectors);
                all.usage.add(&some.usage);
                Ok(all)
            });
        Ok(answers.await?)
    }

    async fn embed_batch(&self, target: &Target, batch: EmbedRequest) -> Result<Embedded, ModelError> {
        let body = self.words.encode(&batch)?;
        let answer = ask(&self.line, target, &body, self.words.refused())
            .await
            .map_err(|error: ModelError| error.of_model(&batch.model))?;
        let mut embedded = self.words.decode(answer)?;
        if embedded.vectors.len() != batch.texts.len() {
            let (got, asked) = (embedded.vectors.len(), batch.texts.len());
            return Err(unreadable(&format!("{got} vectors for {asked} texts")));
        }
        embedded.vectors.iter_mut().for_each(|vector| to_unit_length(vector));
        Ok(embedded)
    }
}

impl<B: Batch> Embed for Batched<B> {
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embedded, CallError>> {
        self.embed_all(request).boxed()
    }

    fn provider(&self) -> &str {
        &self.name
    }
}

fn unreadable(why: &str) -> ModelError {
    ModelError::Unreadable { detail: Detail::new(why) }
}

/// A vector of zeros stays one.
pub(crate) fn to_unit_length(vector: &mut [f32]) {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}
