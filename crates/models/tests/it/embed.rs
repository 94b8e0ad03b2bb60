//! Texts in, vectors out: batches, order, limits, repeats (row S7) and typed
//! errors, for each vendor against a scripted one.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_egress::{Door, Target};
use toolyard_models::bedrock::Access;
use toolyard_models::embed::bedrock::BedrockEmbed;
use toolyard_models::embed::demo::DemoEmbed;
use toolyard_models::embed::gemini::GeminiEmbed;
use toolyard_models::embed::openai::OpenAiEmbed;
use toolyard_models::embed::{EMBED_DIMENSIONS, EMBED_TEXT_BYTES, EMBED_TEXTS};
use toolyard_models::scripted::{Reply, Seen, Upstream};
use toolyard_models::{CallError, Embed, EmbedRequest, ModelError, Purpose, Retry};
use toolyard_protocol::run::Usage;

fn ask(model: &str, texts: &[&str]) -> EmbedRequest {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    EmbedRequest { model: model.into(), texts, ..EmbedRequest::default() }
}

fn hasty(line: &mut toolyard_models::wire::Line) {
    line.retry = Retry { max: 2, pause: Duration::from_millis(1) };
}

fn openai(base_url: &str) -> OpenAiEmbed {
    let target = Target::parse(base_url).unwrap();
    OpenAiEmbed::new("o", Door::operator().unwrap(), &target, Some("sk-canary".into())).with_line(hasty)
}

fn gemini(base_url: &str) -> GeminiEmbed {
    let target = Target::parse(base_url).unwrap();
    GeminiEmbed::new("g", Door::operator().unwrap(), &target, Some("g-canary".into())).with_line(hasty)
}

fn bedrock(base_url: &str) -> BedrockEmbed {
    let access = Access::Keys { id: "id".into(), secret: "canary".into(), session: None };
    let target = Target::parse(base_url).unwrap();
    BedrockEmbed::new("b", Door::operator().unwrap(), &target, "eu-west-1", access).with_line(hasty)
}

/// The number at the end of `text 17`.
fn number(text: &Value) -> f32 {
    text.as_str().unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

/// The number that a vector of unit length `(1, n)` stands for.
fn told(vector: &[f32]) -> f32 {
    (vector[1] / vector[0]).round()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("text {n}")).collect()
}

#[tokio::test]
async fn batches_keep_the_order_of_the_texts() {
    let upstream = Upstream::answer(|seen: &Seen| {
        let input = seen.body["input"].as_array().unwrap();
        // The rows in reverse, as a server that works in parallel may.
        let rows = input.iter().enumerate().rev();
        let rows: Vec<Value> =
            rows.map(|(n, text)| json!({ "index": n, "embedding": [1.0, number(text)] })).collect();
        Reply::json(&json!({ "data": rows, "usage": { "prompt_tokens": input.len() } }))
    });
    let upstream = upstream.await.unwrap();
    let request = EmbedRequest { texts: numbered(5000), dimensions: Some(2), ..ask("m", &[]) };
    let embedded = openai(&upstream.base_url()).embed(request).await.unwrap();
    let numbers: Vec<f32> = embedded.vectors.iter().map(|vector| told(vector)).collect();
    assert_eq!(numbers, (0..5000).map(|n| n as f32).collect::<Vec<_>>());
    assert_eq!(embedded.usage, Usage { input_tokens: 5000, ..Usage::default() });
    let mut sizes: Vec<usize> =
        upstream.requests().iter().map(|seen| seen.body["input"].as_array().unwrap().len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [904, 2048, 2048]);
    let seen = &upstream.requests()[0];
    assert_eq!(
        (seen.path.as_str(), seen.header("authorization")),
        ("/v1/embeddings", Some("Bearer sk-canary"))
    );
    assert_eq!((&seen.body["dimensions"], &seen.body["encoding_format"]), (&json!(2), &json!("float")));
}

#[tokio::test]
async fn gemini_is_asked_in_hundreds_and_its_vectors_are_made_unit_length() {
    let upstream = Upstream::answer(|seen: &Seen| {
        let rows = seen.body["requests"].as_array().unwrap();
        let values = rows.iter().map(|row| number(&row["content"]["parts"][0]["text"]));
        let rows: Vec<Value> = values.map(|n| json!({ "values": [3.0, 3.0 * n] })).collect();
        Reply::json(&json!({ "embeddings": rows }))
    });
    let upstream = upstream.await.unwrap();
    let request = EmbedRequest {
        texts: numbered(150),
        dimensions: Some(768),
        purpose: Purpose::Query,
        ..ask("gemini-embedding-001", &[])
    };
    let embedded = gemini(&upstream.base_url()).embed(request).await.unwrap();
    assert_eq!(embedded.vectors.len(), 150);
    for (n, vector) in embedded.vectors.iter().enumerate() {
        assert_eq!(told(vector), n as f32);
        assert!((vector.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let seen = &upstream.requests()[0];
    assert_eq!(seen.path, "/v1/models/gemini-embedding-001:batchEmbedContents");
    assert_eq!(seen.header("x-goog-api-key"), Some("g-canary"));
    let expected = json!({ "model": "models/gemini-embedding-001", "taskType": "RETRIEVAL_QUERY",
        "content": { "parts": [{ "text": "text 0" }] }, "outputDimensionality": 768 });
    assert!(upstream.requests().iter().any(|seen| seen.body["requests"][0] == expected));
}

#[tokio::test]
async fn bedrock_speaks_to_each_family_in_its_words() {
    let upstream = Upstream::answer(|seen: &Seen| {
        let answer = match seen.body["texts"].as_array() {
            Some(texts) if seen.path.contains("v4") => {
                json!({ "embeddings": { "float": vec![[1.0, 2.0]; texts.len()] } })
            }
            Some(texts) => json!({ "embeddings": vec![[1.0, 2.0]; texts.len()] }),
            None => json!({ "embedding": [1.0, number(&seen.body["inputText"])], "inputTextTokenCount": 3 }),
        };
        Reply::json(&answer)
    });
    let upstream = upstream.await.unwrap();
    let embed = bedrock(&upstream.base_url());
    let request = EmbedRequest {
        texts: numbered(5),
        dimensions: Some(256),
        ..ask("amazon.titan-embed-text-v2:0", &[])
    };
    let titan = embed.embed(request).await.unwrap();
    assert_eq!(titan.vectors.iter().map(|v| told(v)).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(titan.usage.input_tokens, 15);
    let request = EmbedRequest {
        texts: numbered(100),
        purpose: Purpose::Query,
        ..ask("cohere.embed-multilingual-v3", &[])
    };
    assert_eq!(embed.embed(request).await.unwrap().vectors.len(), 100);
    let request = EmbedRequest { dimensions: Some(512), ..ask("eu.cohere.embed-v4:0", &["text 1"]) };
    assert_eq!(embed.embed(request).await.unwrap().vectors.len(), 1);
    assert_eq!(embed.embed(ask("amazon.titan-embed-text-v1", &["text 7"])).await.unwrap().vectors.len(), 1);

    let seen = upstream.requests();
    assert_eq!(seen.len(), 5 + 2 + 1 + 1);
    assert_eq!(seen[0].path, "/v1/model/amazon.titan-embed-text-v2%3A0/invoke");
    assert!(seen[0].header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 "));
    let first = json!({ "inputText": "text 0", "dimensions": 256, "normalize": true });
    assert!(seen.iter().any(|seen| seen.body == first));
    let last = json!({ "texts": ["text 1"], "input_type": "search_document", "embedding_types": ["float"],
        "output_dimension": 512 });
    assert_eq!(seen[7].body, last);
    assert_eq!(seen[8].body, json!({ "inputText": "text 7" }));
    let unknown = embed.embed(ask("anthropic.claude", &["x"])).await.unwrap_err();
    assert!(matches!(unknown, CallError::Model(ModelError::UnknownModel { .. })));
}

#[tokio::test]
async fn s7_a_busy_vendor_is_asked_again_and_a_refusal_is_typed() {
    let good = json!({ "data": [{ "index": 0, "embedding": [1.0, 0.0] }] });
    let upstream = Upstream::serve([Reply::refusal(503, "busy"), Reply::json(&good)]).await.unwrap();
    assert!(openai(&upstream.base_url()).embed(ask("m", &["x"])).await.is_ok());
    assert_eq!(upstream.requests().len(), 2);

    let always = Upstream::answer(|_| Reply::refusal(503, "busy")).await.unwrap();
    let error = openai(&always.base_url()).embed(ask("m", &["x"])).await.unwrap_err();
    assert!(matches!(error, CallError::Model(ModelError::Overloaded { status: 503, .. })), "{error:?}");
    assert_eq!(always.requests().len(), 3);

    let closed = Upstream::answer(|_| Reply::refusal(401, "sk-canary is wrong")).await.unwrap();
    let error = openai(&closed.base_url()).embed(ask("m", &["x"])).await.unwrap_err();
    let CallError::Model(error @ ModelError::KeyRefused { .. }) = error else { panic!("{error:?}") };
    assert!(!error.detail().unwrap().contains("sk-canary"));
    assert_eq!(closed.requests().len(), 1);
}

#[tokio::test]
async fn answers_that_are_none_are_unreadable() {
    let two = json!({ "data": [{ "embedding": [1.0] }, { "embedding": [1.0] }] });
    for reply in [Reply::json(&two), Reply::json(&json!({ "x": 1 })), Reply::html("<h1>no</h1>")] {
        let upstream = Upstream::serve([reply]).await.unwrap();
        let error = openai(&upstream.base_url()).embed(ask("m", &["x"])).await.unwrap_err();
        assert!(matches!(error, CallError::Model(ModelError::Unreadable { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn limits_have_their_numbers_in_the_error_and_nothing_is_sent() {
    let upstream = Upstream::serve([]).await.unwrap();
    let embed = openai(&upstream.base_url());
    let error = async |request| embed.embed(request).await.unwrap_err().to_string();
    let many = EmbedRequest { texts: vec!["x".into(); EMBED_TEXTS + 1], ..ask("m", &[]) };
    assert_eq!(error(many).await, "texts: 10001 is more than the limit of 10000");
    let long = "x".repeat(EMBED_TEXT_BYTES + 1);
    assert_eq!(error(ask("m", &[&long])).await, "bytes of a text: 262145 is more than the limit of 262144");
    let wide = EmbedRequest { dimensions: Some(EMBED_DIMENSIONS as u32 + 1), ..ask("m", &["x"]) };
    assert_eq!(error(wide).await, "dimensions: 8193 is more than the limit of 8192");
    assert_eq!(error(ask("m", &["a", " "])).await, "a text is missing");
    let none = EmbedRequest { dimensions: Some(0), ..ask("m", &["x"]) };
    assert_eq!(error(none).await, "the number of dimensions is missing");
    assert_eq!(upstream.requests(), []);
    assert_eq!(embed.embed(ask("m", &[])).await.unwrap().vectors.len(), 0);
}

#[tokio::test]
async fn the_demo_finds_texts_by_their_words() {
    let demo = DemoEmbed::new("demo");
    let texts = ["The cat sleeps on the sofa.", "Rain in Zürich tomorrow", "A cat on a sofa sleeps!", "☂"];
    let embedded = demo.embed(ask("any", &texts)).await.unwrap();
    let query = demo.embed(ask("any", &["where does the CAT sleep on"])).await.unwrap();
    let likeness =
        |vector: &Vec<f32>| -> f32 { vector.iter().zip(&query.vectors[0]).map(|(a, b)| a * b).sum() };
    let scores: Vec<f32> = embedded.vectors.iter().map(likeness).collect();
    assert!(scores[0] > scores[1] + 0.2 && scores[2] > scores[1], "{scores:?}");
    for vector in &embedded.vectors {
        assert_eq!(vector.len(), 256);
        assert!((vector.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    assert_eq!(demo.embed(ask("any", &texts)).await.unwrap(), embedded);
    let small = EmbedRequest { dimensions: Some(8), ..ask("any", &texts) };
    assert!(demo.embed(small).await.unwrap().vectors.iter().all(|vector| vector.len() == 8));
}
