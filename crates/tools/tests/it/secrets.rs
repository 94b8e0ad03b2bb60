//! What `${secret.NAME}` and `${env.NAME}` stand for, and for whom.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use toolyard_protocol::{SecretName, TenantId};
use toolyard_store::{Settings, Store, StoreError};
use toolyard_tools::sealer::{Purpose, Sealer};
use toolyard_tools::secrets::Secrets;

fn sealer(byte: &str) -> Arc<Sealer> {
    Arc::new(Sealer::parse(&SecretString::from(byte.repeat(32))).unwrap())
}

async fn keep(store: &Store, sealer: &Sealer, tenant: &TenantId, name: &str, value: &str) {
    let sealed = sealer.seal(Purpose::Secret, tenant, name, &SecretString::from(value)).unwrap();
    let (tenant, name) = (tenant.clone(), SecretName::parse(name).unwrap());
    store
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move { toolyard_store::secrets::put(tx, &tenant, &name, &sealed).await })
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn x8_a_reference_has_a_value_for_its_own_tenant_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&Settings::Sqlite { folder: folder.path().to_owned() }).await.unwrap();
    let store = Arc::new(store);
    let (own, acme) = (TenantId::default_tenant(), TenantId::parse("acme").unwrap());
    keep(&store, &sealer("07"), &own, "K", "canary-own").await;
    keep(&store, &sealer("07"), &acme, "K", "canary-acme").await;
    keep(&store, &sealer("08"), &own, "OLD", "canary-old").await;
    let allowed = ["BASE".to_owned(), "EMPTY".to_owned()];
    let env = |name: &str| match name {
        "BASE" => Some("canary-base".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => Some("canary-forbidden".to_owned()),
    };
    let secrets = Secrets::new(store, sealer("07"), &allowed).with_env(env);
    let value = async |tenant: &TenantId, text: &str| {
        let value = secrets.resolve(tenant, text).await;
        value.map(|v| v.expose_secret().to_owned()).map_err(|e| format!("{e} {e:?}"))
    };
    assert_eq!(
        value(&own, "a ${secret.K} {{x}} ${env.BASE}").await.unwrap(),
        "a canary-own {{x}} canary-base"
    );
    assert_eq!(value(&acme, "${secret.K}").await.unwrap(), "canary-acme");
    for (tenant, text, says) in [
        (&own, "${secret.NONE}", "${secret.NONE} is not set"),
        (&own, "${secret.OLD}", "another master key"),
        (&own, "${env.PATH}", "operator's list"),
        (&own, "${env.EMPTY}", "${env.EMPTY} is not set"),
        // The environment is the operator's, whatever the list says.
        (&acme, "${env.BASE}", "this tenant may not use it"),
        (&own, "${secret.a b}", "Invalid secret name"),
    ] {
        let said = value(tenant, text).await.unwrap_err();
        assert!(said.contains(says) && !said.contains("canary"), "{text}: {said}");
    }
    assert!(!format!("{secrets:?}").contains("canary"));
}
