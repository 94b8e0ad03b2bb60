//! What a vendor's refusal leads to: another try, another model, or a sentence
//! that says what to do.

use serde_json::json;
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::{ModelError, Request};
use toolyard_protocol::ErrorCode;

use crate::fixtures::{Outcome, asking, collect, model_at};
use crate::vendors::VENDORS;

async fn answered(reply: Reply) -> (Outcome, usize) {
    let upstream = Upstream::serve([reply, Reply::saying("again")]).await.unwrap();
    let request = Request { model: "gpt-none".into(), ..asking("hi") };
    let outcome = collect(&model_at(&upstream.base_url()), request).await;
    (outcome, upstream.requests().len())
}

/// Row S7: waiting does not fill an account, so that nobody waits for it, and
/// another model may answer.
#[tokio::test]
async fn s7_a_used_up_account_is_asked_once_and_another_model_may_answer() {
    let quota = json!({ "error": { "message": "canary", "type": "insufficient_quota", "code": "insufficient_quota" } });
    for status in [429, 402] {
        let (outcome, requests) = answered(Reply::refusing(status, &quota)).await;
        let error = outcome.error.unwrap();
        assert!(matches!(error, ModelError::OutOfQuota { .. }), "{status}: {error:?}");
        assert!(error.falls_back() && !error.retryable());
        assert_eq!((error.code(), requests), (ErrorCode::ModelRateLimited, 1));
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    // The same in a stream that began well and has said nothing yet.
    let (outcome, requests) = answered(Reply::stream().event(&quota)).await;
    assert!(matches!(outcome.error, Some(ModelError::OutOfQuota { .. })), "{outcome:?}");
    assert_eq!(requests, 1);
}

/// Row C4: who reads the error knows which name was wrong.
#[tokio::test]
async fn c4_a_model_that_the_vendor_does_not_know_is_named() {
    let body = json!({ "error": { "message": "canary", "code": "model_not_found" } });
    for status in [404, 400] {
        let (outcome, _) = answered(Reply::refusing(status, &body)).await;
        let error = outcome.error.unwrap();
        assert_eq!(error.to_string(), "The provider does not know the model \"gpt-none\"", "{status}");
        assert_eq!(error.code(), ErrorCode::ModelNotFound);
        assert!(error.detail().unwrap().contains("canary"));
    }
}

/// A filter that leaves no word is an error; one that cuts a reply is its end.
#[test]
fn s7_a_reply_that_was_filtered_at_once_is_typed_for_every_vendor() {
    for vendor in VENDORS {
        let silent = vendor.reply("filtered_at_once");
        assert!(matches!(silent.error, Some(ModelError::Filtered { .. })), "{}: {silent:?}", vendor.name);
        assert!(silent.chunks.is_empty(), "{}: {silent:?}", vendor.name);
        let said = vendor.reply("filtered");
        assert_eq!((said.text().as_str(), &said.error), ("I ", &None), "{}", vendor.name);
    }
}
