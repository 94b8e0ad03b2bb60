//! Words in, pictures out: each vendor against a scripted one, and the demo's
//! own picture.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_egress::{Door, Target};
use toolyard_models::bedrock::Access;
use toolyard_models::images::bedrock::BedrockImages;
use toolyard_models::images::demo::DemoImages;
use toolyard_models::images::gemini::GeminiImages;
use toolyard_models::images::openai::OpenAiImages;
use toolyard_models::images::{IMAGE_PROMPT_BYTES, IMAGE_SIDE, IMAGES};
use toolyard_models::scripted::{Reply, Seen, Upstream};
use toolyard_models::{CallError, Image, ImageRequest, Images, ModelError, Retry};

/// The start of a PNG and of a JPEG.
const PNG: &str = "iVBORw0KGgo=";
const JPEG: &str = "/9j/4AAQ";

fn hasty(line: &mut toolyard_models::wire::Line) {
    line.retry = Retry { max: 2, pause: Duration::from_millis(1) };
}

fn at(base_url: &str) -> (Door, Target) {
    (Door::operator().unwrap(), Target::parse(base_url).unwrap())
}

fn openai(base_url: &str) -> OpenAiImages {
    let (door, target) = at(base_url);
    OpenAiImages::new("o", door, &target, Some("sk-canary".into())).with_line(hasty)
}

fn gemini(base_url: &str) -> GeminiImages {
    let (door, target) = at(base_url);
    GeminiImages::new("g", door, &target, Some("g-canary".into())).with_line(hasty)
}

fn bedrock(base_url: &str) -> BedrockImages {
    let (door, target) = at(base_url);
    let access = Access::Bearer("b-canary".into());
    BedrockImages::new("b", door, &target, "eu-west-1", access).with_line(hasty)
}

fn cat(model: &str, count: u32, size: Option<(u32, u32)>) -> ImageRequest {
    ImageRequest { count, size, ..ImageRequest::new(model, "a cat") }
}

fn types(images: &[Image]) -> Vec<&str> {
    images.iter().map(|image| image.media_type).collect()
}

#[tokio::test]
async fn openai_is_asked_for_bytes_in_the_words_of_each_model() {
    let upstream = Upstream::answer(|seen: &Seen| {
        let count = seen.body["n"].as_u64().unwrap();
        let rows: Vec<Value> = (0..count).map(|_| json!({ "b64_json": PNG })).collect();
        Reply::json(&json!({ "created": 1, "data": rows }))
    });
    let upstream = upstream.await.unwrap();
    let images = openai(&upstream.base_url());
    let new = images.paint(cat("gpt-image-1", 3, Some((1024, 1536)))).await.unwrap();
    assert_eq!(types(&new), ["image/png"; 3]);
    assert_eq!(new[0].bytes, b"\x89PNG\r\n\x1a\n");
    // This one gives a single picture at a time.
    assert_eq!(images.paint(cat("dall-e-3", 2, None)).await.unwrap().len(), 2);
    let seen = upstream.requests();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0].path, "/v1/images/generations");
    assert_eq!(
        seen[0].body,
        json!({ "model": "gpt-image-1", "prompt": "a cat", "n": 3, "size": "1024x1536" })
    );
    let old = json!({ "model": "dall-e-3", "prompt": "a cat", "n": 1, "response_format": "b64_json" });
    assert_eq!((&seen[1].body, &seen[2].body), (&old, &old));
}

#[tokio::test]
async fn gemini_answers_with_a_picture_and_imagen_predicts_some() {
    let upstream = Upstream::answer(|seen: &Seen| match seen.path.ends_with(":predict") {
        true => {
            let one = json!({ "bytesBase64Encoded": JPEG, "mimeType": "image/png" });
            Reply::json(&json!({ "predictions": [one, { "raiFilteredReason": "one held back" }] }))
        }
        false => {
            let parts = json!([{ "text": "Here:" }, { "inlineData": { "mimeType": "image/png", "data": JPEG },
                "thought": true }, { "inlineData": { "mimeType": "image/png", "data": PNG } }]);
            Reply::json(&json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP" }] }))
        }
    });
    let upstream = upstream.await.unwrap();
    let images = gemini(&upstream.base_url());
    let painted = images.paint(cat("gemini-2.5-flash-image", 2, Some((1280, 720)))).await.unwrap();
    assert_eq!(types(&painted), ["image/png", "image/png"]);
    // The bytes decide what it is.
    let predicted = images.paint(cat("imagen-4.0-generate-001", 2, Some((700, 1000)))).await.unwrap();
    assert_eq!(types(&predicted), ["image/jpeg"]);
    let seen = upstream.requests();
    assert_eq!(seen[0].path, "/v1/models/gemini-2.5-flash-image:generateContent");
    let config = json!({ "responseModalities": ["IMAGE"], "imageConfig": { "aspectRatio": "16:9" } });
    assert_eq!(seen[0].body["generationConfig"], config);
    assert_eq!(seen[2].path, "/v1/models/imagen-4.0-generate-001:predict");
    let body = json!({ "instances": [{ "prompt": "a cat" }],
        "parameters": { "sampleCount": 2, "aspectRatio": "3:4" } });
    assert_eq!(seen[2].body, body);
}

#[tokio::test]
async fn bedrock_paints_with_amazons_own_models() {
    let upstream = Upstream::answer(|_| Reply::json(&json!({ "images": [PNG, PNG], "error": null })));
    let upstream = upstream.await.unwrap();
    let images = bedrock(&upstream.base_url());
    let painted = images.paint(cat("amazon.nova-canvas-v1:0", 2, Some((512, 768)))).await.unwrap();
    assert_eq!(types(&painted), ["image/png", "image/png"]);
    let [seen] = upstream.requests().try_into().unwrap();
    assert_eq!(seen.path, "/v1/model/amazon.nova-canvas-v1%3A0/invoke");
    assert_eq!(seen.header("authorization"), Some("Bearer b-canary"));
    let body = json!({ "taskType": "TEXT_IMAGE", "textToImageParams": { "text": "a cat" },
        "imageGenerationConfig": { "numberOfImages": 2, "width": 512, "height": 768 } });
    assert_eq!(seen.body, body);
    let error = images.paint(cat("stability.sd3", 1, None)).await.unwrap_err();
    assert!(matches!(error, CallError::Model(ModelError::UnknownModel { .. })));
}

#[tokio::test]
async fn what_a_vendor_holds_back_is_filtered_and_not_unreadable() {
    let policy = json!({ "error": { "code": "moderation_blocked", "message": "no" } }).to_string();
    let policy = Reply::new(400, "application/json").raw(policy);
    let blocked = Reply::json(&json!({ "promptFeedback": { "blockReason": "SAFETY" } }));
    let silent = Reply::json(&json!({ "candidates": [{ "finishReason": "IMAGE_SAFETY" }] }));
    let held =
        Reply::json(&json!({ "images": [], "error": "All of the generated images have been blocked" }));
    let upstream = Upstream::serve([policy, blocked, silent, held]).await.unwrap();
    let url = upstream.base_url();
    let vendors: [(Box<dyn Images>, &str); 4] = [
        (Box::new(openai(&url)), "gpt-image-1"),
        (Box::new(gemini(&url)), "gemini-2.5-flash-image"),
        (Box::new(gemini(&url)), "gemini-2.5-flash-image"),
        (Box::new(bedrock(&url)), "amazon.nova-canvas-v1:0"),
    ];
    for (images, model) in vendors {
        let error = images.paint(cat(model, 1, None)).await.unwrap_err();
        let filtered = matches!(error, CallError::Model(ModelError::Filtered { .. }));
        assert!(filtered, "{}: {error:?}", images.provider());
    }
}

#[tokio::test]
async fn s7_busy_is_repeated_and_an_answer_without_bytes_is_unreadable() {
    let good = json!({ "data": [{ "b64_json": PNG }] });
    let upstream = Upstream::serve([Reply::refusal(500, "oh"), Reply::json(&good)]).await.unwrap();
    assert!(openai(&upstream.base_url()).paint(cat("gpt-image-1", 1, None)).await.is_ok());
    for data in [
        json!([]),
        json!([{ "url": "https://x" }]),
        json!([{ "b64_json": "!" }]),
        json!([{ "b64_json": "AAAA" }]),
    ] {
        let upstream = Upstream::serve([Reply::json(&json!({ "data": data }))]).await.unwrap();
        let error = openai(&upstream.base_url()).paint(cat("gpt-image-1", 1, None)).await.unwrap_err();
        assert!(matches!(error, CallError::Model(ModelError::Unreadable { .. })), "{data}: {error:?}");
    }
}

#[tokio::test]
async fn limits_have_their_numbers_in_the_error() {
    let demo = DemoImages::new("demo");
    let error = async |request| demo.paint(request).await.unwrap_err().to_string();
    let many = cat("m", IMAGES as u32 + 1, None);
    assert_eq!(error(many).await, "images: 9 is more than the limit of 8");
    let long = ImageRequest::new("m", "x".repeat(IMAGE_PROMPT_BYTES + 1));
    assert_eq!(error(long).await, "bytes of the description: 32769 is more than the limit of 32768");
    let wide = cat("m", 1, Some((IMAGE_SIDE as u32 + 1, 1)));
    assert_eq!(error(wide).await, "pixels of a side: 4097 is more than the limit of 4096");
    assert_eq!(error(ImageRequest::new("m", " ")).await, "the description is missing");
    assert_eq!(error(cat("m", 0, None)).await, "the number or size of images is missing");
}

#[tokio::test]
async fn the_demo_paints_a_real_png_by_the_words() {
    let demo = DemoImages::new("demo");
    let painted = demo.paint(cat("any", 2, Some((20, 10)))).await.unwrap();
    assert_eq!(painted, demo.paint(cat("any", 2, Some((20, 10)))).await.unwrap());
    assert_ne!(painted[0], painted[1]);
    assert_ne!(
        painted,
        demo.paint(ImageRequest { prompt: "a dog".into(), ..cat("any", 2, Some((20, 10))) }).await.unwrap()
    );
    let bytes = &painted[0].bytes;
    assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(bytes[16..24], [0, 0, 0, 20, 0, 0, 0, 10]);
    // 10 lines of a filter and 20 pixels, each a stored block, and their frame.
    let pixels = 2 + 10 * (5 + 1 + 60) + 4;
    assert_eq!(bytes.len(), 8 + (12 + 13) + (12 + pixels) + 12);
    assert_eq!(bytes[bytes.len() - 8..], [b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82]);
    assert_eq!(demo.paint(cat("any", 1, None)).await.unwrap()[0].bytes[16..24], [0, 0, 0, 32, 0, 0, 0, 32]);
    check_by_python(bytes);
}

/// Python's zlib reads the pixels and agrees with every checksum.
fn check_by_python(png: &[u8]) {
    let Some(python) = crate::referee::python() else { return };
    const READER: &str = "
import sys, zlib, struct
data, at, pixels = sys.stdin.buffer.read(), 8, b''
while at < len(data):
    (size,), kind = struct.unpack('!I', data[at:at+4]), data[at+4:at+8]
    body, crc = data[at+8:at+8+size], struct.unpack('!I', data[at+8+size:at+12+size])[0]
    assert zlib.crc32(kind + body) == crc, kind
    pixels += body if kind == b'IDAT' else b''
    at += 12 + size
assert len(zlib.decompress(pixels)) == 10 * (1 + 3 * 20)
";
    use std::io::Write;
    let mut child = std::process::Command::new(python)
        .args(["-c", READER])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(png).unwrap();
    assert!(child.wait().unwrap().success());
}
