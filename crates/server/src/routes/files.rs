//! Uploaded files: raw bytes in, signed addresses out.

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use toolyard_protocol::{FileId, Hash, KeyKind, Timestamp};
use toolyard_store::blobs::{self, FileRow};
use toolyard_store::{StoreError, Tx};

use super::answer;
use super::call::{Call, Made};
use crate::http::Refusal;

/// How long a signed address works.
const GOOD_FOR_MS: u64 = 60 * 60 * 1000;
/// What a browser may show by itself; everything else is downloaded.
const SHOWN: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "text/plain"];

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileView {
    id: FileId,
    media_type: String,
    name: Option<String>,
    bytes: i64,
    /// Works for an hour without a key.
    url: String,
    url_expires_at: Timestamp,
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneFile {
    file: FileView,
}

/// `POST /api/files`: the body is the file.
pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    if call.body.is_empty() {
        return Err(Refusal::bad_request("The file is empty"));
    }
    let header = |name: &str| call.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let media_type = header("content-type").unwrap_or_else(|| "application/octet-stream".to_owned());
    if media_type.len() > 255 || HeaderValue::from_str(&media_type).is_err() {
        return Err(Refusal::bad_request("content-type: cannot be used"));
    }
    let name = answer::label("x-filename", header("x-filename"))?;
    let (tenant, entity, bytes) = (call.tenant().clone(), call.principal.entity.clone(), call.body.clone());
    let app = call.app.clone();
    call.once(move |tx| {
        Box::pin(async move {
            let now = tx.now().await?;
            let file = FileRow {
                id: FileId::mint(),
                hash: Hash::of(&bytes),
                media_type,
                name,
                bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
                entity,
                run: None,
                created_at: now,
            };
            blobs::put(tx, &tenant, &file.hash, &bytes).await?;
            blobs::put_file(tx, &tenant, &file).await?;
            let until = now.plus_millis(GOOD_FOR_MS);
            let view = FileView {
                url: app.signer.url(&tenant, &file.id, until),
                url_expires_at: until,
                id: file.id,
                media_type: file.media_type,
                name: file.name,
                bytes: file.bytes,
                created_at: file.created_at,
            };
            Ok(Made { status: 201, body: json!(OneFile { file: view }) })
        })
    })
    .await
}

/// `GET /api/files/{file}`: for its uploader, a backend, or a signed address.
pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let id = call.id("file", "File", FileId::parse)?;
    let tenant = call.tenant().clone();
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx: &mut Tx<'_>| {
            Box::pin(async move {
                let Some(file) = blobs::file(tx, &tenant, &id).await? else { return Ok(None) };
                let bytes = blobs::get(tx, &tenant, &file.hash).await?;
                Ok(bytes.map(|bytes| (file, bytes)))
            })
        })
        .await?;
    let (file, bytes) = found.ok_or_else(|| Refusal::not_found("File"))?;
    let own = call.principal.entity.is_some() && call.principal.entity == file.entity;
    if !(call.signed || own || call.principal.kind == KeyKind::Secret) {
        return Err(Refusal::forbidden("This file belongs to another entity"));
    }
    let shown = SHOWN.contains(&file.media_type.split(';').next().unwrap_or_default().trim());
    let media = if shown { file.media_type.as_str() } else { "application/octet-stream" };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    if let Ok(media) = HeaderValue::from_str(media) {
        headers.insert(CONTENT_TYPE, media);
    }
    let how = if shown { "inline" } else { "attachment" };
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static(how));
    // Whatever it is, it is no page of ours.
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=300"));
    Ok(response)
}
