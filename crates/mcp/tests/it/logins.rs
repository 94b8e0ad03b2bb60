//! Users who log in at a remote server, each for themselves.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_egress::{Door, Letter, Patience, Target, Verb};
use toolyard_mcp::{Host, Logins, MemoryTokens, Outcome, Owner, ServerSettings, Sharing};
use toolyard_protocol::{EntityId, TenantId};

use crate::http::Far;
use crate::yard::{call, eventually, host_with, server, text};

fn user(name: &str) -> Owner {
    Owner { tenant: TenantId::parse("acme").unwrap(), entity: Some(EntityId::parse(name).unwrap()) }
}

fn logins(store: &Arc<MemoryTokens>) -> Logins {
    let store: Arc<MemoryTokens> = Arc::clone(store);
    Logins {
        store,
        redirect_uri: "http://127.0.0.1:8787/api/mcp/callback".to_owned(),
        client_metadata_url: None,
    }
}

fn remote(far: &Far) -> ServerSettings {
    let mut settings = server("far", json!({ "url": far.url("/mcp"), "tool_timeout_sec": 10 }));
    settings.sharing = Sharing::User;
    settings
}

/// A browser: follows the address and says where it was sent.
async fn browse(url: &str) -> String {
    let target = Target::parse(url).unwrap();
    let patience = Patience { head: Duration::from_secs(20), idle: Duration::from_secs(20), bytes: 1 << 20 };
    let letter =
        Letter { verb: Verb::Get, target: &target, headers: &[], accept: "*/*", body: None, patience };
    let answer = Door::operator().unwrap().send(letter).await.unwrap();
    assert_eq!(answer.status, 302);
    answer.header("location").unwrap().to_owned()
}

async fn echo(host: &Host, who: &Owner, settings: &ServerSettings) -> Outcome {
    host.call(who, settings, call("echo", json!({ "message": "hi" }))).await
}

fn needs_login(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotSent { needs_login: true, .. })
}

async fn log_in(host: &Host, who: &Owner, settings: &ServerSettings) {
    let login = host.login(who, settings).await.unwrap();
    assert!(login.url.contains(&login.state));
    let back = browse(&login.url).await;
    host.finish_login(who, settings, &back).await.unwrap();
}

/// Row X18: the token of one user serves that user alone; another must log in.
#[tokio::test]
async fn x18_tokens_belong_to_one_user() {
    let (far, store) = (Far::start("oauth"), Arc::new(MemoryTokens::default()));
    let (host, settings) = (host_with(Some(logins(&store))), remote(&far));
    let (ada, bob) = (user("ada"), user("bob"));
    assert!(needs_login(&echo(&host, &ada, &settings).await));
    log_in(&host, &ada, &settings).await;
    assert_eq!(text(echo(&host, &ada, &settings).await), "hi");
    assert!(needs_login(&echo(&host, &bob, &settings).await));
    // The flow was done by the book.
    let log = far.log().await;
    let query = &log.iter().find(|line| line[0] == "authorize").unwrap()[1];
    assert_eq!((&query["code_challenge_method"], &query["scope"]), (&json!("S256"), &json!("tools")));
    let resource = json!(far.url("/mcp"));
    let form = &log.iter().find(|line| line[0] == "token").unwrap()[1];
    assert_eq!((&query["resource"], &form["resource"]), (&resource, &resource));
    host.stop().await;
}

/// What one process began another finishes, and a third one uses.
#[tokio::test]
async fn a_login_outlives_the_process_that_began_it() {
    let (far, store) = (Far::start("oauth"), Arc::new(MemoryTokens::default()));
    let (settings, ada) = (remote(&far), user("ada"));
    let first = host_with(Some(logins(&store)));
    assert!(needs_login(&echo(&first, &ada, &settings).await));
    let login = first.login(&ada, &settings).await.unwrap();
    first.stop().await;
    let back = browse(&login.url).await;
    let second = host_with(Some(logins(&store)));
    second.finish_login(&ada, &settings, &back).await.unwrap();
    // The same way back does not work twice.
    assert!(second.finish_login(&ada, &settings, &back).await.is_err());
    second.stop().await;
    let third = host_with(Some(logins(&store)));
    assert_eq!(text(echo(&third, &ada, &settings).await), "hi");
    third.log_out(&ada, &settings).await.unwrap();
    eventually("the end of the login", || (third.status()[0].state == "needs_auth").then_some(())).await;
    third.stop().await;
}

/// A callback that names another issuer, or another state, gets nothing.
#[tokio::test]
async fn x18_a_forged_callback_is_refused() {
    let (far, store) = (Far::start("oauth"), Arc::new(MemoryTokens::default()));
    let (host, settings, ada) = (host_with(Some(logins(&store))), remote(&far), user("ada"));
    let login = host.login(&ada, &settings).await.unwrap();
    let back = browse(&login.url).await;
    let issuer = url::Url::parse(&back).unwrap();
    let forged = back.replace(&format!("127.0.0.1%3A{}", far.port()), "evil.example");
    assert_ne!(issuer.as_str(), forged);
    assert!(host.finish_login(&ada, &settings, &forged).await.is_err());
    assert!(host.finish_login(&ada, &settings, &back.replace(&login.state, "other")).await.is_err());
    assert!(host.finish_login(&user("bob"), &settings, &back).await.is_err());
    host.finish_login(&ada, &settings, &back).await.unwrap();
    assert_eq!(text(echo(&host, &ada, &settings).await), "hi");
    host.stop().await;
}

/// A token that the server no longer takes is renewed, and the call is made
/// once; when it cannot be renewed, the user is asked.
#[tokio::test]
async fn a_refused_token_is_renewed_without_a_second_call() {
    let (far, store) = (Far::start("oauth"), Arc::new(MemoryTokens::default()));
    let (host, settings, ada) = (host_with(Some(logins(&store))), remote(&far), user("ada"));
    log_in(&host, &ada, &settings).await;
    assert_eq!(text(echo(&host, &ada, &settings).await), "hi");
    far.control(json!({ "revoke": true })).await;
    assert_eq!(text(echo(&host, &ada, &settings).await), "hi");
    let refreshed =
        |log: &[Value]| log.iter().filter(|line| line[1]["grant_type"] == "refresh_token").count();
    assert_eq!(refreshed(&far.log().await), 1);
    far.control(json!({ "revoke": true, "refresh": {} })).await;
    assert!(needs_login(&echo(&host, &ada, &settings).await));
    assert_eq!(host.status()[0].state, "needs_auth");
    host.stop().await;
}

/// A token that is about to end is renewed before it is used.
#[tokio::test]
async fn an_old_token_is_renewed_in_time() {
    let (far, store) = (Far::start("oauth"), Arc::new(MemoryTokens::default()));
    let (host, settings, ada) = (host_with(Some(logins(&store))), remote(&far), user("ada"));
    far.control(json!({ "expires": 5 })).await;
    log_in(&host, &ada, &settings).await;
    far.control(json!({ "expires": 3600 })).await;
    assert_eq!(text(echo(&host, &ada, &settings).await), "hi");
    let log = far.log().await;
    assert!(log.iter().any(|line| line[1]["grant_type"] == "refresh_token"), "{log:?}");
    host.stop().await;
}

/// Row X18: a connection that several share has no logins, so that nobody
/// calls with the token of somebody else.
#[tokio::test]
async fn x18_a_shared_connection_has_no_logins() {
    let (far, store) = (Far::start("oauth"), Arc::new(MemoryTokens::default()));
    let host = host_with(Some(logins(&store)));
    for sharing in [Sharing::Shared, Sharing::Tenant] {
        let mut settings = remote(&far);
        settings.sharing = sharing;
        let refused = host.login(&user("ada"), &settings).await.unwrap_err();
        assert!(refused.contains("sharing = \"user\""), "{refused}");
    }
    host.stop().await;
}

/// A server that moves to another authorization server gets a new login there:
/// what the old one knew is not shown to the new one.
#[tokio::test]
async fn x18_credentials_do_not_move_with_the_server() {
    let (far, other, store) = (Far::start("oauth"), Far::start("oauth"), Arc::new(MemoryTokens::default()));
    let (host, settings, ada) = (host_with(Some(logins(&store))), remote(&far), user("ada"));
    log_in(&host, &ada, &settings).await;
    assert_eq!(text(echo(&host, &ada, &settings).await), "hi");
    far.control(json!({ "moved": other.url(""), "revoke": true })).await;
    assert!(needs_login(&echo(&host, &ada, &settings).await));
    assert!(other.log().await.iter().all(|line| line[0] != "token"), "the old refresh token was shown");
    host.stop().await;
}
