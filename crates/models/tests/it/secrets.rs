//! Row X8: a key never leaves through an error, a `Debug` or a detail.

use serde_json::json;
use toolyard_egress::{Door, Target};
use toolyard_models::openai::OpenAi;
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::{ProviderKind, ProviderSettings, Providers};

use crate::fixtures::{asking, collect, model_at};

const CANARY: &str = "sk-canary-0123456789";

#[tokio::test]
async fn x8_a_vendor_that_repeats_the_key_does_not_leak_it() {
    let said = format!("Incorrect API key provided: {CANARY}.");
    let fault = json!({ "error": { "message": said, "type": "authentication_error" } });
    // The second one puts the key across the place where details end.
    let long = format!("{}{CANARY}", "x".repeat(1985));
    let replies = [
        Reply::refusal(401, &said),
        Reply::refusal(400, &long),
        Reply::html(&said),
        Reply::stream().event(&fault),
        Reply::stream().text("a").event(&fault),
        Reply::stream().raw(format!("data: {said}\n\n")),
        Reply::json(&json!({ "choices": said })),
    ];
    for reply in replies {
        let upstream = Upstream::serve([reply]).await.unwrap();
        let error = collect(&model_at(&upstream.base_url()), asking("hi")).await.error.unwrap();
        let told = format!("{error} {error:?} {:?}", error.detail());
        assert!(!told.contains(CANARY) && !told.contains("sk-canary"), "{told}");
        assert!(!format!("{error} {error:?}").contains("Incorrect"), "{error:?}");
    }
}

#[test]
fn x8_debug_of_everything_that_holds_a_key_shows_none() {
    let door = Door::operator().unwrap();
    let base = format!("http://127.0.0.1:9/{CANARY}?key={CANARY}");
    let settings = ProviderSettings {
        name: "p".into(),
        kind: ProviderKind::OpenAi,
        base_url: None,
        api_key: Some(CANARY.into()),
    };
    let target = Target::parse(&base).unwrap();
    let model = OpenAi::new("p", door.clone(), &target, Some(CANARY.into()));
    let shown = format!("{settings:?} {model:?} {target:?} {door:?}");
    assert!(!shown.contains(CANARY), "{shown}");
    let providers = Providers::open(vec![settings], &door).unwrap();
    assert!(!format!("{providers:?}").contains(CANARY));
}

#[tokio::test]
async fn x8_an_address_with_a_key_in_it_stays_out_of_errors() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/{CANARY}", listener.local_addr().unwrap());
    drop(listener);
    let model = OpenAi::new("p", Door::operator().unwrap(), &Target::parse(&base).unwrap(), None)
        .with_retry(toolyard_models::Retry { max: 0, ..Default::default() });
    let error = collect(&model, asking("hi")).await.error.unwrap();
    let told = format!("{error} {error:?} {:?}", error.detail());
    assert!(!told.contains(CANARY), "{told}");
}

#[tokio::test]
async fn x8_a_key_that_no_header_can_carry_is_not_echoed() {
    let upstream = Upstream::serve([]).await.unwrap();
    let target = Target::parse(&upstream.base_url()).unwrap();
    let key = format!("{CANARY}\n");
    let model = OpenAi::new("p", Door::operator().unwrap(), &target, Some(key.into()));
    let error = collect(&model, asking("hi")).await.error.unwrap();
    let told = format!("{error} {error:?} {:?}", error.detail());
    assert!(!told.contains(CANARY), "{told}");
    assert!(error.detail().unwrap().contains("cannot carry"), "{told}");
    assert_eq!(upstream.requests(), []);
}
