//! Embeddings of the families behind Bedrock: Titan and Cohere, by
//! `InvokeModel`.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_egress::{Door, Target};
use toolyard_protocol::run::Usage;

use super::{Batch, Batched, EmbedRequest, Embedded, Purpose, unreadable};
use crate::bedrock::{Access, Decoder, address, line};
use crate::error::{Detail, ModelError};
use crate::wire::{Decode, Refusal};

/// Texts of one request that Cohere takes. Titan takes one.
const COHERE_BATCH: usize = 96;

/// The words of both families.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

pub type BedrockEmbed = Batched<Words>;

impl BedrockEmbed {
    /// `base` is the address above `/model`.
    pub fn new(name: &str, door: Door, base: &Target, region: &str, access: Access) -> Self {
        Self::over(name, base, line(door, region, access), Words)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// The first one, which has no options.
    TitanOld,
    Titan,
    Cohere,
}

/// Ids may have a region before them, and ARNs a lot more.
fn family(model: &str) -> Result<Family, ModelError> {
    match model {
        _ if model.contains("amazon.titan-embed-text-v1") || model.contains("amazon.titan-embed-g1") => {
            Ok(Family::TitanOld)
        }
        _ if model.contains("amazon.titan-embed") => Ok(Family::Titan),
        _ if model.contains("cohere.embed") => Ok(Family::Cohere),
        _ => {
            let detail = Detail::new(format!("no known family of embeddings: {model}"));
            Err(ModelError::unknown_model(detail))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// Titan.
    embedding: Option<Vec<f32>>,
    input_text_token_count: Option<u64>,
    /// Cohere: a list, or lists by type.
    embeddings: Option<Rows>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Rows {
    Plain(Vec<Vec<f32>>),
    ByType { float: Vec<Vec<f32>> },
}

impl Batch for Words {
    fn size(&self, model: &str) -> usize {
        match family(model) {
            Ok(Family::Cohere) => COHERE_BATCH,
            Ok(Family::TitanOld | Family::Titan) | Err(_) => 1,
        }
    }

    fn address(&self, base: &Target, model: &str) -> Result<Target, ModelError> {
        family(model)?;
        address(base, model, "invoke")
    }

    fn encode(&self, batch: &EmbedRequest) -> Result<Value, ModelError> {
        let text = batch.texts.first().map(String::as_str).unwrap_or_default();
        let mut body = match family(&batch.model)? {
            Family::TitanOld => return Ok(json!({ "inputText": text })),
            Family::Titan => json!({ "inputText": text, "normalize": true }),
            Family::Cohere => {
                let purpose = match batch.purpose {
                    Purpose::Document => "search_document",
                    Purpose::Query => "search_query",
                };
                json!({ "texts": batch.texts, "input_type": purpose, "embedding_types": ["float"] })
            }
        };
        if let Some(dimensions) = batch.dimensions {
            let name = if body.get("texts").is_some() { "output_dimension" } else { "dimensions" };
            body[name] = Value::from(dimensions);
        }
        Ok(body)
    }

    fn decode(&self, answer: Value) -> Result<Embedded, ModelError> {
        let answer: Answer = serde_json::from_value(answer).map_err(|why| unreadable(&why.to_string()))?;
        let vectors = match (answer.embedding, answer.embeddings) {
            (Some(vector), _) => vec![vector],
            (None, Some(Rows::Plain(vectors) | Rows::ByType { float: vectors })) => vectors,
            (None, None) => return Err(unreadable("no vectors")),
        };
        let input_tokens = answer.input_text_token_count.unwrap_or(0);
        Ok(Embedded { vectors, usage: Usage { input_tokens, ..Usage::default() } })
    }

    fn refused(&self) -> fn(&Refusal) -> ModelError {
        Decoder::refused
    }
}
