//! `image-generator` tools: words become pictures, pictures become files
//! (row G11).

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolyard_models::{CallError, ImageRequest, Providers};
use toolyard_protocol::agent::execution::ImageGenerator;
use toolyard_protocol::message::text_of;
use toolyard_store::{Store, StoreError, messages};

use crate::files;
use crate::{CallContext, ToolFailure};

/// Messages that a painter reads with `includeContext`.
const CONTEXT: u32 = 10;

/// Who paints, and where pictures are kept.
#[derive(Debug, Clone)]
pub struct Pictures {
    pub providers: Providers,
    pub store: Arc<Store>,
}

/// What a configuration may not say, with a sentence.
pub(crate) fn check(tool: &ImageGenerator) -> Result<(), String> {
    if tool.api_key.is_some() || tool.base_url.is_some() {
        let text =
            "apiKey and baseURL belong to a provider of the gateway's configuration ([providers.NAME])";
        return Err(text.to_owned());
    }
    size(tool.size.as_deref()).map(drop)
}

pub(crate) async fn execute(
    tool: &ImageGenerator,
    args: &Value,
    context: &CallContext,
    pictures: &Pictures,
) -> Result<Value, ToolFailure> {
    let prompt = args.get("prompt").and_then(Value::as_str).map(str::trim).filter(|p| !p.is_empty());
    let prompt = prompt.ok_or_else(|| tell("Image generator requires a prompt"))?;
    let started = Instant::now();
    let provider = painter(tool, &pictures.providers)?;
    let images = pictures.providers.images(provider).map_err(|e| tell(e.to_string()))?;
    let model = tool.model.as_deref().unwrap_or(images.usual_model()).to_owned();
    let prompt = match tool.include_context {
        true => format!("{}\n\n{prompt}", said(pictures, context).await?),
        false => prompt.to_owned(),
    };
    let wishes = [("Style", &tool.style), ("Quality", &tool.quality)];
    let prompt = wishes.into_iter().fold(prompt, |prompt, (name, wish)| match wish {
        Some(wish) => format!("{prompt}\n\n{name}: {wish}"),
        None => prompt,
    });
    let request =
        ImageRequest { size: size(tool.size.as_deref()).map_err(tell)?, ..ImageRequest::new(&model, prompt) };
    let painted = images.paint(request).await.map_err(|e: CallError| tell(e.to_string()))?;
    let mut shown = Vec::with_capacity(painted.len());
    for (n, image) in painted.into_iter().enumerate() {
        let id = files::keep(&pictures.store, context, n, image.media_type.to_owned(), image.bytes).await?;
        shown.push(json!({ "url": format!("/api/files/{id}"), "fileId": id, "mediaType": image.media_type }));
    }
    let duration = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(json!({
        "success": true, "provider": provider, "model": model, "images": shown, "duration": duration,
    }))
}

/// The provider under the names that configurations use; without one, whoever
/// of the configured ones paints.
fn painter<'a>(tool: &'a ImageGenerator, providers: &'a Providers) -> Result<&'a str, ToolFailure> {
    match tool.provider.as_deref() {
        Some("dall-e" | "dalle") => Ok("openai"),
        Some(name) => Ok(name),
        None => providers.painter().ok_or_else(|| tell("No configured provider makes images")),
    }
}

fn size(text: Option<&str>) -> Result<Option<(u32, u32)>, String> {
    let wrong = |text: &str| {
        format!("size: {text} is not square, landscape, portrait or a width and height like 1024x1024")
    };
    Ok(match text {
        None => None,
        Some("square") => Some((1024, 1024)),
        Some("landscape") => Some((1536, 1024)),
        Some("portrait") => Some((1024, 1536)),
        Some(text) => {
            let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
            Some(sides.filter(|(w, h)| *w > 0 && *h > 0).ok_or_else(|| wrong(text))?)
        }
    })
}

/// What was said last, as the painter reads it.
async fn said(pictures: &Pictures, context: &CallContext) -> Result<String, ToolFailure> {
    let Some(space) = context.space.clone() else { return Ok(String::new()) };
    let tenant = context.tenant.clone();
    let read = pictures.store.read::<_, StoreError, _>(move |tx| {
        Box::pin(async move { messages::page(tx, &tenant, &space, None, None, CONTEXT).await })
    });
    let messages = read.await.map_err(|_| tell("The conversation cannot be read"))?;
    let lines: Vec<String> = messages.iter().map(|m| text_of(&m.parts)).filter(|t| !t.is_empty()).collect();
    Ok(format!("The conversation so far:\n{}", lines.join("\n")))
}

fn tell(text: impl Into<String>) -> ToolFailure {
    ToolFailure::TellModel(text.into())
}
