//! Pictures of Amazon's own models behind Bedrock (Nova Canvas, Titan), by
//! `InvokeModel`.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_egress::{Door, Target};

use super::{ImageRequest, Paint, Painter, filtered, unreadable};
use crate::bedrock::{Access, Decoder, address, line};
use crate::error::{Detail, ModelError};
use crate::wire::{Decode, Refusal};

/// Pictures that the models give at once.
const MOST: u32 = 5;

/// The words of both models.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

pub type BedrockImages = Painter<Words>;

impl BedrockImages {
    /// `base` is the address above `/model`.
    pub fn new(name: &str, door: Door, base: &Target, region: &str, access: Access) -> Self {
        Self::over(name, base, line(door, region, access), Words)
    }
}

#[derive(Deserialize)]
struct Answer {
    images: Option<Vec<String>>,
    /// Why there are fewer than asked for.
    error: Option<String>,
}

impl Paint for Words {
    fn usual_model(&self) -> &'static str {
        "amazon.nova-canvas-v1:0"
    }

    fn most(&self, _: &str) -> u32 {
        MOST
    }

    fn address(&self, base: &Target, model: &str) -> Result<Target, ModelError> {
        if !model.contains("amazon.nova-canvas") && !model.contains("amazon.titan-image") {
            let detail = Detail::new(format!("no known family of images: {model}"));
            return Err(ModelError::unknown_model(detail));
        }
        address(base, model, "invoke")
    }

    fn encode(&self, request: &ImageRequest) -> Value {
        let mut config = json!({ "numberOfImages": request.count });
        if let Some((width, height)) = request.size {
            config["width"] = Value::from(width);
            config["height"] = Value::from(height);
        }
        let words = json!({ "text": request.prompt });
        json!({ "taskType": "TEXT_IMAGE", "textToImageParams": words, "imageGenerationConfig": config })
    }

    fn decode(&self, answer: Value) -> Result<Vec<String>, ModelError> {
        let answer: Answer = serde_json::from_value(answer).map_err(|why| unreadable(&why.to_string()))?;
        match (answer.images.unwrap_or_default(), answer.error) {
            (pictures, _) if !pictures.is_empty() => Ok(pictures),
            // The models say this only of content that they hold back.
            (_, Some(why)) => Err(filtered(why)),
            (_, None) => Err(unreadable("the answer has no picture")),
        }
    }

    fn refused(&self) -> fn(&Refusal) -> ModelError {
        |refusal| {
            // Words that break the vendor's rules are a validation error too.
            if refusal.status == 400 && refusal.body.contains("content filters") {
                return filtered(refusal.body.clone());
            }
            Decoder::refused(refusal)
        }
    }
}
