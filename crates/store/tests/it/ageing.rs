//! What ends by itself: the hold on a parcel, and old keys of pages.

use serde_json::json;
use toolyard_protocol::{Hash, KeyKind, TenantId};
use toolyard_store::runs::Owner;
use toolyard_store::{keys, nodes, outbox};

use crate::cast;
use crate::home::{Home, tx};

/// A node that dies with a parcel in hand costs no time: the next one takes it.
pub(crate) async fn a_parcel_in_a_dead_hand_is_taken_at_once(home: &Home) {
    let tenant = cast::tenant();
    let (dying, next) = (cast::owner("dying"), cast::owner("next"));
    let attempts = async |by: &Owner| {
        tx!(home, write, [by], |tx| {
            nodes::beat(tx, &by, 3_600_000).await?;
            let later = tx.now().await?.plus_millis(3_600_000);
            let taken = outbox::take(tx, &by, later, 10).await?;
            Ok(taken.into_iter().map(|parcel| parcel.attempts).collect::<Vec<_>>())
        })
    };
    let due = async || {
        tx!(home, read, [next], |tx| Ok(outbox::next_due(tx, &next).await?.unwrap() <= tx.now().await?))
    };
    tx!(home, write, [tenant], |tx| outbox::put(tx, &tenant, "one", "mail", &json!(1)).await);
    assert_eq!(attempts(&dying).await, [1]);
    assert!(!due().await);
    assert_eq!(attempts(&next).await, [] as [i64; 0], "a live node keeps what it has");
    tx!(home, write, [dying], |tx| nodes::leave(tx, &dying).await);
    assert!(due().await);
    assert_eq!(attempts(&next).await, [2]);
    // What was put off is in nobody's hand.
    tx!(home, write, [tenant, next], |tx| {
        let later = tx.now().await?.plus_millis(3_600_000);
        outbox::postpone(tx, &tenant, "one", later).await?;
        nodes::leave(tx, &next).await
    });
    assert!(!due().await);
}

pub(crate) async fn the_oldest_keys_of_a_label_go_and_no_others(home: &Home) {
    let (tenant, other) = (cast::tenant(), cast::other_tenant());
    let make = async |tenant: &TenantId, label: &'static str, n: u8| {
        let hash = Hash::of(format!("{tenant} {label} {n}").as_bytes());
        tx!(home, write, [tenant, hash], |tx| keys::insert(tx, &tenant, KeyKind::Secret, &hash, label).await)
            .id
    };
    let mut pages = Vec::new();
    for n in 0..5 {
        home.clock.advance(1);
        pages.push(make(&tenant, "page", n).await);
        make(&tenant, "other", n).await;
        make(&other, "page", n).await;
    }
    for expected in [&pages[..3], &[]] {
        let gone = tx!(home, write, [tenant], |tx| keys::drop_oldest(tx, &tenant, "page", 2).await);
        assert_eq!(gone, expected);
    }
    let left = tx!(home, read, [], |tx| keys::list(tx, None).await);
    assert_eq!(left.len(), 12);
    assert!(pages[3..].iter().all(|page| left.iter().any(|key| key.id == *page)));
}
