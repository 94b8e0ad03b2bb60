//! Gemini's `batchEmbedContents`.

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_egress::{Door, Target};
use toolyard_protocol::run::Usage;

use super::{Batch, Batched, EmbedRequest, Embedded, Purpose, unreadable};
use crate::error::{Detail, ModelError};
use crate::gemini::{Decoder, path_of};
use crate::wire::{Decode, Line, Refusal};

/// Texts of one request that the vendor takes.
const BATCH: usize = 100;

/// The words of `batchEmbedContents`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

pub type GeminiEmbed = Batched<Words>;

impl GeminiEmbed {
    /// `base` is the address above `/models`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        Self::over(name, base, Line::new(door).with_key("x-goog-api-key", key), Words)
    }
}

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    values: Vec<f32>,
}

fn path(model: &str) -> Result<String, ModelError> {
    let detail = || Detail::new("the model's name cannot be part of an address");
    path_of(model).ok_or_else(|| ModelError::unknown_model(detail()))
}

impl Batch for Words {
    fn size(&self, _: &str) -> usize {
        BATCH
    }

    fn address(&self, base: &Target, model: &str) -> Result<Target, ModelError> {
        Ok(base.below(&format!("{}:batchEmbedContents", path(model)?)))
    }

    fn encode(&self, batch: &EmbedRequest) -> Result<Value, ModelError> {
        let model = path(&batch.model)?;
        let task = match batch.purpose {
            Purpose::Document => "RETRIEVAL_DOCUMENT",
            Purpose::Query => "RETRIEVAL_QUERY",
        };
        let row = |text: &String| {
            let mut row =
                json!({ "model": model, "content": { "parts": [{ "text": text }] }, "taskType": task });
            if let Some(dimensions) = batch.dimensions {
                row["outputDimensionality"] = Value::from(dimensions);
            }
            row
        };
        Ok(json!({ "requests": batch.texts.iter().map(row).collect::<Vec<_>>() }))
    }

    fn decode(&self, answer: Value) -> Result<Embedded, ModelError> {
        let answer: Answer = serde_json::from_value(answer).map_err(|why| unreadable(&why.to_string()))?;
        let vectors = answer.embeddings.into_iter().map(|row| row.values).collect();
        // The vendor does not count here.
        Ok(Embedded { vectors, usage: Usage::default() })
    }

    fn refused(&self) -> fn(&Refusal) -> ModelError {
        Decoder::refused
    }
}
