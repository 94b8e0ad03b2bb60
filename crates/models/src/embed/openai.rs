//! OpenAI embeddings, as many vendors and local servers speak them.

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_egress::{Door, Target};
use toolyard_protocol::run::Usage;

use super::{Batch, Batched, EmbedRequest, Embedded, unreadable};
use crate::error::ModelError;
use crate::openai::Decoder;
use crate::wire::{Decode, Line, Refusal};

/// Texts of one request that the vendor takes.
const BATCH: usize = 2048;

/// The words of `/embeddings`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

pub type OpenAiEmbed = Batched<Words>;

impl OpenAiEmbed {
    /// `base` is the address above `/embeddings`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        Self::over(name, base, Line::new(door).with_bearer(key), Words)
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Row>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Row {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
}

impl Batch for Words {
    fn size(&self, _: &str) -> usize {
        BATCH
    }

    fn address(&self, base: &Target, _: &str) -> Result<Target, ModelError> {
        Ok(base.below("embeddings"))
    }

    fn encode(&self, batch: &EmbedRequest) -> Result<Value, ModelError> {
        let mut body = json!({ "model": batch.model, "input": batch.texts, "encoding_format": "float" });
        if let Some(dimensions) = batch.dimensions {
            body["dimensions"] = Value::from(dimensions);
        }
        Ok(body)
    }

    fn decode(&self, answer: Value) -> Result<Embedded, ModelError> {
        let Answer { mut data, usage } =
            serde_json::from_value(answer).map_err(|why| unreadable(&why.to_string()))?;
        // Rows are numbered, and servers that work in parallel mix them.
        if data.iter().all(|row| row.index.is_some()) {
            data.sort_by_key(|row| row.index);
        }
        let input_tokens = usage.and_then(|tokens| tokens.prompt_tokens).unwrap_or(0);
        let vectors = data.into_iter().map(|row| row.embedding).collect();
        Ok(Embedded { vectors, usage: Usage { input_tokens, ..Usage::default() } })
    }

    fn refused(&self) -> fn(&Refusal) -> ModelError {
        Decoder::refused
    }
}
