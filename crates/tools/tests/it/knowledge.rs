//! G26: documents are searched by words and by meaning.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_models::embed::demo::DemoEmbed;
use toolyard_protocol::{DocumentId, SpaceId, Timestamp, limits};
use toolyard_store::knowledge::{self, Document, DocumentStatus};
use toolyard_tools::knowledge::{Embedder, Form, text_of};

use crate::home::{Home, START_MS};

pub(crate) async fn add(home: &Home, space: Option<&SpaceId>, title: &str, text: &str) -> DocumentId {
    let document = Document {
        id: DocumentId::mint(),
        space: space.cloned(),
        entity: None,
        title: title.to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: i64::try_from(text.len()).unwrap(),
        status: DocumentStatus::Indexing,
        done_bytes: 0,
        chunks: 0,
        embedded: 0,
        model: None,
        error: None,
        created_at: Timestamp::from_millis(START_MS),
        updated_at: Timestamp::from_millis(START_MS),
    };
    let (tenant, id, text) = (home.tenant.clone(), document.id.clone(), text.to_owned());
    home.write(move |tx| Box::pin(async move { knowledge::insert(tx, &tenant, &document, &text).await }))
        .await;
    id
}

async fn find(home: &Home, query: &str) -> Value {
    home.act(&home.anns(), "searchKnowledge", json!({"query": query})).await.unwrap()
}

#[tokio::test]
async fn g26_a_passage_is_found_with_all_that_a_citation_needs() {
    let home = Home::new().await;
    let filler = "Nothing of interest is said here. ".repeat(200);
    let text = format!("{filler}\n\nRefunds are paid within ten days.\n\n{filler}");
    let id = add(&home, None, "Terms", &text).await;
    add(&home, None, "Menu", "Soup and bread.").await;
    home.index().await;
    let answer = find(&home, "When is a refund paid?").await;
    let best = &answer["results"][0];
    assert_eq!((&best["documentId"], &best["title"]), (&json!(id), &json!("Terms")));
    let (start, end) = (best["start"].as_u64().unwrap(), best["end"].as_u64().unwrap());
    let cited = &text[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()];
    assert_eq!(best["text"], cited);
    assert!(cited.contains("Refunds are paid"), "{cited}");
    assert!(best["position"].as_u64().unwrap() > 0);
    assert_eq!(find(&home, "unicorns").await, json!({"success": true, "total": 0, "results": []}));
    // What looks like the language of an index is words.
    assert_eq!(find(&home, "\" OR * NEAR( tenant:").await["success"], true);
}

#[tokio::test]
async fn g26_with_an_embedding_model_both_ways_of_finding_count() {
    let embedder = Embedder { provider: Arc::new(DemoEmbed::new("demo")), model: "words".to_owned() };
    let home = Home::with(Some(embedder)).await;
    let id = add(&home, None, "Terms", &"Refunds take ten days. ".repeat(300)).await;
    home.index().await;
    let (tenant, asked) = (home.tenant.clone(), id.clone());
    let document = home
        .write(move |tx| Box::pin(async move { knowledge::get(tx, &tenant, &asked).await }))
        .await
        .unwrap();
    assert_eq!((document.status, document.embedded), (DocumentStatus::Ready, document.chunks));
    assert!(document.chunks > 3);
    assert_eq!(document.model.as_deref(), Some("demo/words"));
    let answer = find(&home, "refunds take").await;
    // First in both lists: twice 1/61.
    let score = answer["results"][0]["score"].as_f64().unwrap();
    assert!((score - 2.0 / 61.0).abs() < 1e-9, "{score}");
    assert_eq!(answer.get("note"), None);
}

#[tokio::test]
async fn a_slice_never_holds_the_whole_document() {
    let home = Home::new().await;
    let id = add(&home, None, "Long", &"A sentence that fills the page. ".repeat(5_000)).await;
    let mut seen = Vec::new();
    loop {
        let worked = home.work().await;
        let (tenant, id) = (home.tenant.clone(), id.clone());
        let document = home
            .write(move |tx| Box::pin(async move { knowledge::get(tx, &tenant, &id).await }))
            .await
            .unwrap();
        if !worked {
            assert_eq!((document.status, document.done_bytes), (DocumentStatus::Ready, document.bytes));
            break;
        }
        seen.push(document.chunks);
    }
    assert!(seen.len() >= 8, "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[1] - pair[0] <= 16), "{seen:?}");
}

#[test]
fn text_is_taken_out_of_html_and_pdf_and_broken_files_are_told() {
    let html = b"<html><head><style>p{}</style><script>alert(1)</script></head><body><h1>Title</h1><p>Hello <b>world</b></p></body></html>";
    let text = text_of(Form::Html, html).unwrap();
    assert!(text.contains("Title") && text.contains("Hello") && !text.contains("alert"), "{text}");
    let text = text_of(Form::Pdf, &pdf("Refunds in ten days")).unwrap();
    assert!(text.contains("Refunds in ten days"), "{text}");
    for (form, bytes) in
        [(Form::Pdf, &b"%PDF-1.4 rubbish"[..]), (Form::Text, &[0xff, 0xfe, 0x00][..]), (Form::Text, b" \n")]
    {
        let refused = text_of(form, bytes).unwrap_err();
        assert!(refused.message.starts_with("The document cannot be read"), "{refused}");
    }
    let large = text_of(Form::Text, &vec![b'x'; limits::DOCUMENT_TEXT_BYTES + 1]).unwrap_err();
    assert_eq!(large.limit, Some(limits::DOCUMENT_TEXT_BYTES as u64));
    assert_eq!(Form::of("text/markdown; charset=utf-8"), Some(Form::Text));
    assert_eq!(Form::of("image/png"), None);
}

/// A page with one line, written by hand.
fn pdf(line: &str) -> Vec<u8> {
    let content = format!("BT /F1 24 Tf 72 700 Td ({line}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        offsets.push(out.len());
        out.extend(format!("{} 0 obj\n{object}\nendobj\n", i + 1).into_bytes());
    }
    let start = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for offset in offsets {
        out.extend(format!("{offset:010} 00000 n \n").into_bytes());
    }
    out.extend(
        format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1)
            .into_bytes(),
    );
    out
}
