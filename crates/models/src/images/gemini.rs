//! Google's two ways to pictures: Gemini answers with one, Imagen predicts
//! several.

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_egress::{Door, Target};

use super::{ImageRequest, Paint, Painter, filtered, shape, unreadable};
use crate::error::{Detail, ModelError};
use crate::gemini::{Decoder, path_of};
use crate::wire::{Decode, Line, Refusal};

/// Pictures that Imagen gives at once.
const IMAGEN_MOST: u32 = 4;

/// The words of both ways.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

pub type GeminiImages = Painter<Words>;

impl GeminiImages {
    /// `base` is the address above `/models`.
    pub fn new(name: &str, door: Door, base: &Target, key: Option<SecretString>) -> Self {
        Self::over(name, base, Line::new(door).with_key("x-goog-api-key", key), Words)
    }
}

fn is_imagen(model: &str) -> bool {
    model.rsplit('/').next().is_some_and(|name| name.starts_with("imagen"))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Answer {
    predictions: Option<Vec<Prediction>>,
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prediction {
    bytes_base64_encoded: Option<String>,
    rai_filtered_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    inline_data: Option<Blob>,
    /// Drafts that are not the answer.
    thought: Option<bool>,
}

#[derive(Deserialize)]
struct Blob {
    data: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

impl Paint for Words {
    fn usual_model(&self) -> &'static str {
        "gemini-2.5-flash-image"
    }

    fn most(&self, model: &str) -> u32 {
        if is_imagen(model) { IMAGEN_MOST } else { 1 }
    }

    fn address(&self, base: &Target, model: &str) -> Result<Target, ModelError> {
        let Some(path) = path_of(model) else {
            let detail = Detail::new("the model's name cannot be part of an address");
            return Err(ModelError::unknown_model(detail));
        };
        let verb = if is_imagen(model) { "predict" } else { "generateContent" };
        Ok(base.below(&format!("{path}:{verb}")))
    }

    fn encode(&self, request: &ImageRequest) -> Value {
        let shape = request.size.map(shape);
        if is_imagen(&request.model) {
            let mut parameters = json!({ "sampleCount": request.count });
            if let Some(shape) = shape {
                parameters["aspectRatio"] = Value::from(shape);
            }
            return json!({ "instances": [{ "prompt": request.prompt }], "parameters": parameters });
        }
        let mut config = json!({ "responseModalities": ["IMAGE"] });
        if let Some(shape) = shape {
            config["imageConfig"] = json!({ "aspectRatio": shape });
        }
        let content = json!({ "role": "user", "parts": [{ "text": request.prompt }] });
        json!({ "contents": [content], "generationConfig": config })
    }

    fn decode(&self, answer: Value) -> Result<Vec<String>, ModelError> {
        let answer: Answer = serde_json::from_value(answer).map_err(|why| unreadable(&why.to_string()))?;
        let (mut pictures, mut reasons) = (Vec::new(), Vec::new());
        reasons.extend(answer.prompt_feedback.and_then(|feedback| feedback.block_reason));
        for prediction in answer.predictions.into_iter().flatten() {
            pictures.extend(prediction.bytes_base64_encoded);
            reasons.extend(prediction.rai_filtered_reason);
        }
        for Candidate { content, finish_reason } in answer.candidates.into_iter().flatten() {
            let parts = content.and_then(|content| content.parts).into_iter().flatten();
            let shown = parts.filter(|part| part.thought != Some(true));
            pictures.extend(shown.filter_map(|part| part.inline_data).filter_map(|blob| blob.data));
            reasons.extend(finish_reason.filter(|reason| reason != "STOP"));
        }
        match (pictures.is_empty(), reasons.is_empty()) {
            (false, _) => Ok(pictures),
            (true, false) => Err(filtered(reasons.join(", "))),
            (true, true) => Err(unreadable("the answer has no picture")),
        }
    }

    fn refused(&self) -> fn(&Refusal) -> ModelError {
        Decoder::refused
    }
}
