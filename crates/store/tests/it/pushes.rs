//! Addresses that hear of one task.

use toolyard_protocol::{RunId, TenantId, Timestamp};
use toolyard_store::outbox;
use toolyard_store::push_configs::{self, PARCEL, PushConfig};
use toolyard_store::secrets::Sealed;

use crate::cast;
use crate::home::{Home, tx};

fn config(run: &RunId, id: &str, url: &str) -> PushConfig {
    PushConfig {
        run: run.clone(),
        id: id.to_owned(),
        url: url.to_owned(),
        version: "1.0".to_owned(),
        owner: "secret".to_owned(),
        sealed: Sealed { bytes: vec![1, 2], key_id: "k".to_owned() },
        created_at: Timestamp::from_millis(5),
    }
}

pub(crate) async fn a_task_tells_its_own_addresses_once_and_no_others(home: &Home) {
    let (tenant, other) = (cast::tenant(), cast::other_tenant());
    let (run, another) = (RunId::mint(), RunId::mint());
    let put = async |tenant: &TenantId, config: PushConfig| {
        tx!(home, write, [tenant, config], |tx| push_configs::put(tx, &tenant, &config).await);
    };
    put(&tenant, config(&run, "a", "https://a.example")).await;
    put(&tenant, config(&run, "b", "https://b.example")).await;
    put(&tenant, config(&another, "a", "https://c.example")).await;
    put(&other, config(&run, "a", "https://d.example")).await;
    // The same name again is another form of the same address.
    put(&tenant, config(&run, "b", "https://e.example")).await;
    let urls = async |tenant: &TenantId, run: &RunId| {
        let found = tx!(home, read, [tenant, run], |tx| push_configs::list(tx, &tenant, &run).await);
        found.into_iter().map(|c| c.url).collect::<Vec<_>>()
    };
    assert_eq!(urls(&tenant, &run).await, ["https://a.example", "https://e.example"]);
    assert_eq!(urls(&other, &another).await, [] as [String; 0]);

    for _ in 0..2 {
        tx!(home, write, [tenant, run], |tx| push_configs::announce(tx, &tenant, &run, 7).await);
    }
    let mut taken = tx!(home, write, [], |tx| {
        let later = tx.now().await?.plus_millis(3_600_000);
        outbox::take(tx, later, 10).await
    });
    taken.sort_by(|a, b| a.id.cmp(&b.id));
    let told: Vec<_> = taken.iter().map(|p| (p.tenant.clone(), p.id.clone(), p.kind.as_str())).collect();
    let expected = ["a", "b"].map(|id| (tenant.clone(), format!("{run}:7:push:{id}"), PARCEL));
    assert_eq!(told, expected);

    let delete = async |tenant: &TenantId, id: &'static str| {
        tx!(home, write, [tenant, run], |tx| push_configs::delete(tx, &tenant, &run, id).await)
    };
    assert!(!delete(&other, "b").await, "another tenant's is not there");
    assert!(delete(&tenant, "b").await);
    assert!(!delete(&tenant, "b").await);
    let found = tx!(home, read, [tenant, run], |tx| push_configs::get(tx, &tenant, &run, "a").await);
    assert_eq!(found, Some(config(&run, "a", "https://a.example")));
}
