//! Parcels that nobody takes are given up in the end, and the audit says so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde_json::json;
use toolyard_egress::{Door, Opened};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{NodeId, WebhookId};
use toolyard_runtime::{Delivery, Purpose, Retry, Sealer};
use toolyard_store::runs::Owner;
use toolyard_store::webhooks::{self, Wanted, Webhook};
use toolyard_store::{StoreError, audit, outbox};

use crate::yard::Yard;

fn delivery() -> Delivery {
    Delivery {
        door: Door::guarded(Opened::default()).unwrap(),
        sealer: Arc::new(Sealer::parse(&SecretString::from("07".repeat(32))).unwrap()),
        mailer: None,
        files: String::new(),
        retry: Retry { first: Duration::from_millis(1), most: Duration::from_millis(5), attempts: 3 },
    }
}

/// The lines of the audit once the outbox is empty.
async fn given_up(yard: &Yard, count: usize) -> Vec<(String, String)> {
    let started = Instant::now();
    loop {
        let tenant = yard.tenant.clone();
        let nobody = Owner { node: NodeId::parse("nobody").unwrap(), incarnation: String::new() };
        let (left, lines) = yard
            .rt
            .store()
            .read::<_, StoreError, _>(move |tx| {
                Box::pin(async move {
                    Ok((outbox::next_due(tx, &nobody).await?, audit::list(tx, &tenant, None, 10).await?))
                })
            })
            .await
            .unwrap();
        if left.is_none() && lines.len() >= count {
            return lines.into_iter().map(|l| (l.action, l.detail.unwrap_or_default())).collect();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{left:?} {lines:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_webhook_that_leads_inside_is_given_up_after_its_attempts() {
    let yard = Yard::new(json!([])).await;
    let (id, delivery) = (WebhookId::mint(), delivery());
    let key = SecretString::from("whsec_x");
    let sealed = delivery.sealer.seal(Purpose::Webhook, &yard.tenant, id.as_str(), &key).unwrap();
    yard.rt.deliver_parcels(delivery);
    let (tenant, hook) = (yard.tenant.clone(), id.clone());
    yard.rt
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let webhook = Webhook {
                    id: hook,
                    url: "http://127.0.0.1:9/hook".to_owned(),
                    wanted: Wanted { completed: true, ..Wanted::default() },
                    sealed,
                    created_at: tx.now().await?,
                    last_at: None,
                    last_status: None,
                    failures: 0,
                    given_up: 0,
                };
                webhooks::insert(tx, &tenant, &webhook).await
            })
        })
        .await
        .unwrap();
    let run = yard.say("hello").await;
    yard.until(&run, RunStatus::Completed).await;
    let lines = given_up(&yard, 1).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].0, "webhook.given_up");
    assert!(lines[0].1.starts_with("after 3 attempts: the address is in a private"), "{lines:?}");
    let tenant = yard.tenant.clone();
    let read = yard
        .rt
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { webhooks::get(tx, &tenant, &id).await }));
    let state = read.await.unwrap().unwrap();
    assert_eq!((state.failures, state.given_up, state.last_status), (3, 1, None));
}

#[tokio::test]
async fn a_letter_without_a_mail_server_is_given_up_at_once() {
    let yard = Yard::new(json!([])).await;
    let tenant = yard.tenant.clone();
    let letter = json!({"to": "ada@example.org", "subject": "s", "text": "t"});
    yard.rt
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move { outbox::put(tx, &tenant, "letter-1", "email", &letter).await })
        })
        .await
        .unwrap();
    yard.rt.deliver_parcels(delivery());
    let lines = given_up(&yard, 1).await;
    let why = "after 1 attempts: this gateway has no mail server (smtp.host)".to_owned();
    assert_eq!(lines, [("email.given_up".to_owned(), why)]);
}
