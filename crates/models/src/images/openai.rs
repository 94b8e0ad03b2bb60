//! OpenAI's `/images/generations`.

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_egress::{Door, Target};

use super::{ImageRequest, Paint, Painter, filtered, unreadable};
use crate::error::ModelError;
use crate::openai::Decoder;
use crate::wire::{Decode, Line, Refusal};

/// The words of `/images/generations`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

pub type OpenAiImages = Painter<Words>;

impl OpenAiImages {
    /// `base` is the address above `/images`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        Self::over(name, base, Line::new(door).with_bearer(key), Words)
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    b64_json: Option<String>,
}

impl Paint for Words {
    fn usual_model(&self) -> &'static str {
        "gpt-image-1"
    }

    fn most(&self, model: &str) -> u32 {
        if model.starts_with("dall-e-3") { 1 } else { 10 }
    }

    fn address(&self, base: &Target, _: &str) -> Result<Target, ModelError> {
        Ok(base.below("images/generations"))
    }

    fn encode(&self, request: &ImageRequest) -> Value {
        let mut body = json!({ "model": request.model, "prompt": request.prompt, "n": request.count });
        if let Some((width, height)) = request.size {
            body["size"] = Value::from(format!("{width}x{height}"));
        }
        // The older models give addresses unless told; the newer ones refuse
        // the field.
        if request.model.starts_with("dall-e") {
            body["response_format"] = Value::from("b64_json");
        }
        body
    }

    fn decode(&self, answer: Value) -> Result<Vec<String>, ModelError> {
        let Answer { data } = serde_json::from_value(answer).map_err(|why| unreadable(&why.to_string()))?;
        let pictures = data.into_iter().map(|row| row.b64_json);
        pictures.collect::<Option<Vec<_>>>().ok_or_else(|| unreadable("a picture has no bytes"))
    }

    fn refused(&self) -> fn(&Refusal) -> ModelError {
        |refusal| {
            let said = |words: &str| refusal.status == 400 && refusal.body.contains(words);
            if said("content_policy_violation") || said("moderation_blocked") {
                return filtered(format!("status {}: {}", refusal.status, refusal.body));
            }
            Decoder::refused(refusal)
        }
    }
}
