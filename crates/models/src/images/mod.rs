//! Words in, pictures out: what every vendor of images can do.
//!
//! A vendor is a pure `encode` and `decode` of one question; [`Painter`] asks
//! until there are enough pictures. Pictures come as bytes: an address at the
//! vendor would end before the conversation does.

#[cfg(feature = "bedrock")]
pub mod bedrock;
pub mod demo;
pub mod gemini;
pub mod openai;
mod png;

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use toolyard_egress::Target;

use crate::call_error::CallError;
use crate::error::{Detail, ModelError};
use crate::wire::{Line, Refusal, ask};

/// Pictures of one request.
pub const IMAGES: usize = 8;
/// Bytes of the words that describe them.
pub const IMAGE_PROMPT_BYTES: usize = 32 << 10;
/// Pixels of a side.
pub const IMAGE_SIDE: usize = 4096;

/// A provider of pictures.
pub trait Images: Send + Sync + fmt::Debug {
    /// As many pictures as asked for, or fewer if the vendor held some back.
    /// Never none.
    fn paint(&self, request: ImageRequest) -> BoxFuture<'_, Result<Vec<Image>, CallError>>;
    /// The name it is configured under.
    fn provider(&self) -> &str;
    /// The model that paints when nobody names one.
    fn usual_model(&self) -> &'static str;
}

/// What to paint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRequest {
    /// The model's name at its vendor.
    pub model: String,
    pub prompt: String,
    pub count: u32,
    /// Width and height in pixels; missing means the model's own. Vendors that
    /// know only shapes take the nearest one.
    pub size: Option<(u32, u32)>,
}

impl ImageRequest {
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { model: model.into(), prompt: prompt.into(), count: 1, size: None }
    }

    /// What no vendor needs to see.
    fn check(&self) -> Result<(), CallError> {
        if self.prompt.trim().is_empty() {
            return Err(CallError::Empty { what: "the description" });
        }
        CallError::check("bytes of the description", self.prompt.len(), IMAGE_PROMPT_BYTES)?;
        if self.count == 0 || self.size.is_some_and(|(width, height)| width == 0 || height == 0) {
            return Err(CallError::Empty { what: "the number or size of images" });
        }
        CallError::check("images", self.count as usize, IMAGES)?;
        let (width, height) = self.size.unwrap_or((1, 1));
        CallError::check("pixels of a side", width.max(height) as usize, IMAGE_SIDE)
    }
}

/// One picture.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.media_type, self.bytes.len())
    }
}

/// One vendor's words for a question. Pure.
pub trait Paint: Send + Sync + fmt::Debug {
    /// The model that paints when nobody names one.
    fn usual_model(&self) -> &'static str;
    /// Pictures that this model gives at once.
    fn most(&self, model: &str) -> u32;
    fn address(&self, base: &Target, model: &str) -> Result<Target, ModelError>;
    fn encode(&self, request: &ImageRequest) -> Value;
    /// The pictures as base64. None is an error, since it has a reason.
    fn decode(&self, answer: Value) -> Result<Vec<String>, ModelError>;
    fn refused(&self) -> fn(&Refusal) -> ModelError;
}

/// A vendor that is asked until there are enough. Its `Debug` shows no key.
#[derive(Debug, Clone)]
pub struct Painter<P> {
    name: String,
    base: Target,
    line: Line,
    words: P,
}

impl<P: Paint> Painter<P> {
    /// `base` is the address above the vendor's paths.
    pub fn over(name: &str, base: &Target, line: Line, words: P) -> Self {
        Self { name: name.to_owned(), base: base.clone(), line, words }
    }

    pub fn with_line(mut self, change: impl FnOnce(&mut Line)) -> Self {
        change(&mut self.line);
        self
    }

    async fn paint_all(&self, request: ImageRequest) -> Result<Vec<Image>, CallError> {
        request.check()?;
        let named = |error: ModelError| error.of_model(&request.model);
        let target = self.words.address(&self.base, &request.model).map_err(named)?;
        let most = self.words.most(&request.model).max(1);
        let mut images = Vec::new();
        let mut left = request.count;
        while left > 0 {
            let count = left.min(most);
            left -= count;
            let body = self.words.encode(&ImageRequest { count, ..request.clone() });
            let answer = ask(&self.line, &target, &body, self.words.refused()).await.map_err(named)?;
            for text in self.words.decode(answer)? {
                images.push(image(&text)?);
            }
        }
        match images.is_empty() {
            true => Err(unreadable("no pictures").into()),
            false => Ok(images),
        }
    }
}

impl<P: Paint> Images for Painter<P> {
    fn paint(&self, request: ImageRequest) -> BoxFuture<'_, Result<Vec<Image>, CallError>> {
        self.paint_all(request).boxed()
    }

    fn provider(&self) -> &str {
        &self.name
    }

    fn usual_model(&self) -> &'static str {
        self.words.usual_model()
    }
}

fn unreadable(why: &str) -> ModelError {
    ModelError::Unreadable { detail: Detail::new(why) }
}

fn filtered(why: impl Into<String>) -> ModelError {
    ModelError::Filtered { detail: Detail::new(why) }
}

/// The bytes say what they are; vendors' words about them are not always true.
fn image(base64: &str) -> Result<Image, ModelError> {
    let bytes = BASE64_STANDARD.decode(base64).map_err(|_| unreadable("a picture is not base64"))?;
    let media_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(unreadable("a picture has no known form")),
    };
    Ok(Image { media_type, bytes })
}

/// The nearest shape that a vendor knows by name.
fn shape((width, height): (u32, u32)) -> &'static str {
    const SHAPES: [(&str, f64); 5] =
        [("1:1", 1.0), ("4:3", 4.0 / 3.0), ("3:4", 0.75), ("16:9", 16.0 / 9.0), ("9:16", 9.0 / 16.0)];
    let wanted = (f64::from(width) / f64::from(height)).ln();
    let far = |ratio: f64| (ratio.ln() - wanted).abs();
    SHAPES.iter().min_by(|a, b| far(a.1).total_cmp(&far(b.1))).map_or("1:1", |(name, _)| name)
}
