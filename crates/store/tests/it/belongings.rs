//! What hangs on a tenant: keys, grants, clients, blobs, files, audit, outbox.

use serde_json::json;
use toolyard_protocol::{
    ClientId, EntityId, FileId, GrantId, Hash, KeyId, KeyKind, SecretName, TenantId, Timestamp, WebhookId,
    limits,
};
use toolyard_store::blobs::{self, FileRow};
use toolyard_store::clients::{self, Client};
use toolyard_store::grants::{self, GrantRow};
use toolyard_store::keys::{self, Key};
use toolyard_store::outbox::{self, Parcel};
use toolyard_store::secrets::{self, Sealed};
use toolyard_store::webhooks::{self, Attempt, Fact, Wanted, Webhook};
use toolyard_store::{StoreError, audit, mcp_logins, mcp_records};

use crate::cast;
use crate::home::{Home, START_MS, tx};

pub(crate) async fn a_key_is_found_by_its_hash_also_when_revoked(home: &Home) {
    let (tenant, hash) = (cast::tenant(), Hash::of(b"the key"));
    let key =
        tx!(home, write, [tenant, hash], |tx| keys::insert(tx, &tenant, KeyKind::Public, &hash, "web app")
            .await);
    let found = async |hash: &Hash| tx!(home, read, [hash], |tx| keys::by_hash(tx, &hash).await);
    assert_eq!(found(&hash).await, Some(key.clone()));
    assert_eq!((key.kind, key.label.as_str()), (KeyKind::Public, "web app"));
    assert_eq!(found(&Hash::of(b"another")).await, None);

    let (id, unknown) = (key.id.clone(), KeyId::mint());
    for (id, expected) in [(&unknown, false), (&id, true), (&id, false)] {
        let revoked = tx!(home, write, [tenant, id], |tx| keys::revoke(tx, &tenant, &id).await);
        assert_eq!(revoked, expected);
    }
    let revoked = found(&hash).await.unwrap();
    assert!(revoked.revoked_at.is_some());
    assert_eq!(Key { revoked_at: None, ..revoked }, key);
}

pub(crate) async fn a_key_hash_is_taken_once_and_a_tenant_is_born_with_it(home: &Home) {
    let (acme, umbrella) = (cast::tenant(), cast::other_tenant());
    let insert = async |tenant: &TenantId, text: &'static [u8]| {
        tx!(home, try_write, [tenant], |tx| keys::insert(tx, &tenant, KeyKind::Secret, &Hash::of(text), "k")
            .await)
    };
    insert(&acme, b"one").await.unwrap();
    insert(&acme, b"two").await.unwrap();
    let refused = insert(&umbrella, b"one").await;
    assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
    let tenants = tx!(home, read, [], |tx| tx.all("SELECT id FROM tenants", &[], |r| r.text(0)).await);
    assert_eq!(tenants, ["acme"], "a refused key bears no tenant");
    insert(&umbrella, b"three").await.unwrap();
    let (all, mine) =
        tx!(home, read, [acme], |tx| Ok((keys::list(tx, None).await?, keys::list(tx, Some(&acme)).await?)));
    let tenants: Vec<&str> = all.iter().map(|k| k.tenant.as_str()).collect();
    assert_eq!(tenants, ["acme", "acme", "umbrella"]);
    assert_eq!(mine, all[..2]);
}

pub(crate) async fn grants_expire_and_belong_to_an_entity_or_to_all(home: &Home) {
    let (tenant, anna) = (cast::tenant(), EntityId::mint());
    let now = tx!(home, write, [], |tx| tx.now().await);
    let grant = |entity: Option<&EntityId>, expires_at: Option<Timestamp>| GrantRow {
        id: GrantId::mint(),
        entity: entity.cloned(),
        tool: "get_location".to_owned(),
        body: json!({ "args": { "path": "a*" } }),
        created_at: now,
        expires_at,
    };
    let hour = Some(now.plus_millis(3_600_000));
    let all = [
        grant(Some(&anna), None),
        grant(Some(&anna), hour),
        // Over in the moment that it names.
        grant(Some(&anna), Some(now)),
        grant(Some(&EntityId::mint()), None),
        grant(None, None),
        grant(None, Some(now)),
    ];
    for grant in &all {
        tx!(home, write, [tenant, grant], |tx| grants::insert(tx, &tenant, &grant).await);
    }
    let of = async |entity: Option<EntityId>| {
        tx!(home, read, [tenant, entity], |tx| grants::of_entity(tx, &tenant, entity.as_ref()).await)
    };
    let [first, second, _, _, everyone, _] = all.clone();
    assert_eq!(of(Some(anna)).await, [first, second, everyone.clone()]);
    assert_eq!(of(None).await, [everyone]);
    let list = tx!(home, read, [tenant], |tx| grants::list(tx, &tenant, None, 4).await);
    let newest: Vec<GrantRow> = all.iter().rev().take(4).cloned().collect();
    assert_eq!(list, newest, "expired ones are still shown to people");
    let id = all[0].id.clone();
    for expected in [true, false] {
        let deleted = tx!(home, write, [tenant, id], |tx| grants::delete(tx, &tenant, &id).await);
        assert_eq!(deleted, expected);
    }
}

pub(crate) async fn a_client_id_belongs_to_the_entity_that_took_it(home: &Home) {
    let (tenant, anna) = (cast::tenant(), EntityId::mint());
    let client = |entity: Option<&EntityId>, name: &str, seen: i64| Client {
        id: ClientId::parse("laptop").unwrap(),
        entity: entity.cloned(),
        kind: "node".to_owned(),
        name: Some(name.to_owned()),
        capabilities: Some(json!(["files"])),
        last_seen: Timestamp::from_millis(START_MS + seen),
    };
    let put = async |client: &Client| {
        tx!(home, write, [tenant, client], |tx| clients::put(tx, &tenant, &client).await)
    };
    let list = async || tx!(home, read, [tenant], |tx| clients::list(tx, &tenant, 10).await);
    assert!(put(&client(Some(&anna), "old", 0)).await);
    let renewed = client(Some(&anna), "new", 5);
    assert!(put(&renewed).await);
    for thief in [Some(EntityId::mint()), None] {
        assert!(!put(&client(thief.as_ref(), "thief", 9)).await);
    }
    assert_eq!(list().await, std::slice::from_ref(&renewed));

    // A backend's client has no entity: it is the backend's.
    let mut robot = client(None, "robot", 7);
    robot.id = ClientId::parse("robot").unwrap();
    assert!(put(&robot).await);
    assert!(put(&robot).await);
    let mut taken = robot.clone();
    taken.entity = Some(anna);
    assert!(!put(&taken).await);
    assert_eq!(list().await, [robot, renewed], "the last seen first");
}

pub(crate) async fn blobs_are_kept_once_and_come_back_whole(home: &Home) {
    let tenant = cast::tenant();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let hash = Hash::of(&bytes);
    for _ in 0..2 {
        tx!(home, write, [tenant, hash, bytes], |tx| blobs::put(tx, &tenant, &hash, &bytes).await);
    }
    let empty = Hash::of(b"");
    tx!(home, write, [tenant, empty], |tx| blobs::put(tx, &tenant, &empty, b"").await);
    let unknown = Hash::of(b"unknown");
    let (found, nothing, none) = tx!(home, read, [tenant, hash, empty, unknown], |tx| {
        Ok((
            blobs::get(tx, &tenant, &hash).await?,
            blobs::get(tx, &tenant, &empty).await?,
            blobs::get(tx, &tenant, &unknown).await?,
        ))
    });
    assert!(found == Some(bytes), "the bytes differ");
    assert_eq!((nothing, none), (Some(Vec::new()), None));
}

pub(crate) async fn a_file_reads_back_as_it_was_stored(home: &Home) {
    let tenant = cast::tenant();
    for entity in [Some(EntityId::mint()), None] {
        let file = FileRow {
            id: FileId::mint(),
            hash: Hash::of(b"bytes"),
            media_type: "image/png".to_owned(),
            name: entity.as_ref().map(|_| "a.png".to_owned()),
            bytes: 5,
            entity,
            run: None,
            created_at: Timestamp::from_millis(START_MS),
        };
        tx!(home, write, [tenant, file], |tx| blobs::put_file(tx, &tenant, &file).await);
        let id = file.id.clone();
        let stored = tx!(home, read, [tenant, id], |tx| blobs::file(tx, &tenant, &id).await);
        assert_eq!(stored, Some(file));
    }
}

pub(crate) async fn audit_lines_are_listed_newest_first_in_pages(home: &Home) {
    let tenant = cast::tenant();
    for n in 0..30 {
        let target = format!("thing-{n}");
        tx!(home, write, [tenant, target], |tx| audit::write(
            tx,
            &tenant,
            "key_1",
            "thing.delete",
            &target,
            (n % 2 == 0).then_some("by hand")
        )
        .await);
    }
    let mut targets = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let page =
            tx!(home, read, [tenant, before], |tx| audit::list(tx, &tenant, before.as_deref(), 7).await);
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        targets.extend(page.into_iter().map(|e| (e.target, e.detail)));
    }
    let expected: Vec<(String, Option<String>)> =
        (0..30).rev().map(|n| (format!("thing-{n}"), (n % 2 == 0).then(|| "by hand".to_owned()))).collect();
    assert_eq!(targets, expected);
}

pub(crate) async fn a_parcel_comes_back_until_it_is_delivered(home: &Home) {
    let tenant = cast::tenant();
    let put = async |id: &'static str, payload: i64| {
        tx!(home, write, [tenant], |tx| outbox::put(tx, &tenant, id, "webhook", &json!(payload)).await);
    };
    // Takes what is due and says when it comes back, from now.
    let take = async |retry_in: u64, limit: u32| {
        tx!(home, write, [], |tx| {
            let again = tx.now().await?.plus_millis(retry_in);
            cast::take(tx, again, limit).await
        })
    };
    let parcel = |id: &str, payload: i64, attempts| Parcel {
        tenant: tenant.clone(),
        id: id.to_owned(),
        kind: "webhook".to_owned(),
        payload: json!(payload),
        attempts,
    };
    put("one", 1).await;
    put("one", 99).await;
    assert_eq!(take(0, 10).await, [parcel("one", 1, 1)], "the same id is one parcel");
    assert_eq!(take(0, 10).await, [parcel("one", 1, 2)]);
    assert_eq!(take(3_600_000, 10).await, [parcel("one", 1, 3)]);
    assert_eq!(take(0, 10).await, [], "not due before its hour");
    put("two", 2).await;
    put("three", 3).await;
    assert_eq!(take(0, 1).await.len(), 1, "a limit holds");
    let mut due: Vec<String> = take(0, 10).await.into_iter().map(|p| p.id).collect();
    due.sort();
    assert_eq!(due, ["three", "two"]);
    for id in ["two", "three", "two"] {
        tx!(home, write, [tenant], |tx| outbox::delivered(tx, &tenant, id).await);
    }
    assert_eq!(take(0, 10).await, []);
}

/// A parcel is part of its transaction: no commit, no delivery.
pub(crate) async fn a_parcel_of_a_failed_transaction_is_never_taken(home: &Home) {
    let tenant = cast::tenant();
    let failed = tx!(home, try_write, [tenant], |tx| {
        outbox::put(tx, &tenant, "one", "webhook", &json!(1)).await?;
        Err::<(), _>(StoreError::broken("changed my mind"))
    });
    assert!(failed.is_err());
    let taken = tx!(home, write, [], |tx| {
        let now = tx.now().await?;
        cast::take(tx, now, 10).await
    });
    assert_eq!(taken, []);
}

/// X18: what a user holds at a server is that user's, and goes with the user.
pub(crate) async fn x18_a_users_records_are_theirs_and_one_node_renews_them(home: &Home) {
    let place = |tenant: TenantId, entity: &str| mcp_records::Place {
        tenant,
        entity: EntityId::parse(entity).unwrap(),
        server: "s".to_owned(),
    };
    let (ann, bob) = (place(cast::tenant(), "ent_ann"), place(cast::tenant(), "ent_bob"));
    let foreign = place(cast::other_tenant(), "ent_ann");
    let sealed = |text: &str| Sealed { bytes: text.as_bytes().to_vec(), key_id: "k1".to_owned() };
    let put = async |value: &str, ms: Option<u64>| {
        let (ann, sealed) = (ann.clone(), sealed(value));
        tx!(home, write, [ann, sealed, ms], |tx| {
            let expires = match ms {
                Some(ms) => Some(tx.now().await?.plus_millis(ms)),
                None => None,
            };
            mcp_records::put(tx, &ann, "tokens", &sealed, expires).await
        });
    };
    let get = async |place: &mcp_records::Place| {
        tx!(home, read, [place], |tx| mcp_records::get(tx, &place, "tokens").await)
    };
    put("one", None).await;
    put("two", None).await;
    assert_eq!(get(&ann).await, Some(sealed("two")));
    assert_eq!((get(&bob).await, get(&foreign).await), (None, None));
    put("old", Some(0)).await;
    assert_eq!(get(&ann).await, None, "it has expired");
    put("three", None).await;
    // One holder at a time; a lease that is over is no lease.
    let lock = async |who: &'static str, ms: u64| {
        tx!(home, write, [ann], |tx| mcp_records::lock(tx, &ann, who, ms).await)
    };
    assert_eq!((lock("a", 60_000).await, lock("b", 60_000).await), (true, false));
    tx!(home, write, [ann], |tx| mcp_records::unlock(tx, &ann, "b").await);
    assert!(!lock("b", 60_000).await, "another's lock stays");
    tx!(home, write, [ann], |tx| mcp_records::unlock(tx, &ann, "a").await);
    assert_eq!((lock("b", 0).await, lock("a", 60_000).await), (true, true));
    tx!(home, write, [ann], |tx| toolyard_store::entities::delete(tx, &ann.tenant, &ann.entity).await);
    assert_eq!(get(&ann).await, None, "it went with its user");
}

/// X18: a login that has begun is found once, while it is young.
pub(crate) async fn x18_a_login_is_taken_once(home: &Home) {
    let login = |expires_at| mcp_logins::Login {
        tenant: cast::tenant(),
        entity: EntityId::parse("ent_ann").unwrap(),
        server: "{}".to_owned(),
        expires_at,
    };
    let state = |text: &str| Hash::of(text.as_bytes());
    let begin = async |text: &str, ms: u64| {
        let state = state(text);
        tx!(home, write, [state], |tx| {
            let login = login(tx.now().await?.plus_millis(ms));
            mcp_logins::insert(tx, &state, &login).await
        });
    };
    let take = async |text: &str| {
        let state = state(text);
        tx!(home, write, [state], |tx| mcp_logins::take(tx, &state).await).is_some()
    };
    begin("young", 60_000).await;
    begin("old", 0).await;
    let (young, old) = (state("young"), state("old"));
    let open = tx!(home, read, [young, old], |tx| Ok((
        mcp_logins::is_open(tx, &young).await?,
        mcp_logins::is_open(tx, &old).await?
    )));
    assert_eq!(open, (true, false));
    assert_eq!((take("young").await, take("young").await, take("old").await), (true, false, false));
    // Nobody fills the table: the oldest of one user give way.
    for n in 0..limits::MCP_LOGINS + 2 {
        begin(&format!("n{n}"), 60_000 + n as u64).await;
    }
    let mut kept = 0;
    for n in 0..limits::MCP_LOGINS + 2 {
        kept += usize::from(take(&format!("n{n}")).await);
    }
    assert_eq!(kept, limits::MCP_LOGINS);
}

pub(crate) async fn a_secret_is_replaced_listed_without_its_value_and_removed(home: &Home) {
    let (tenant, other) = (cast::tenant(), cast::other_tenant());
    let name = |text: &str| SecretName::parse(text).unwrap();
    let sealed = |text: &str| Sealed { bytes: text.as_bytes().to_vec(), key_id: "k1".to_owned() };
    let put = async |n: &str, value: &str| {
        let (name, sealed) = (name(n), sealed(value));
        tx!(home, write, [tenant, name, sealed], |tx| secrets::put(tx, &tenant, &name, &sealed).await)
    };
    let get = async |tenant: &TenantId, n: &str| {
        let name = name(n);
        tx!(home, read, [tenant, name], |tx| secrets::get(tx, &tenant, &name).await)
    };
    assert!(put("B", "one").await);
    assert!(put("A", "two").await);
    assert!(!put("B", "three").await, "the name is there already");
    assert_eq!(get(&tenant, "B").await, Some(sealed("three")));
    assert_eq!(get(&other, "B").await, None);
    assert_eq!(get(&tenant, "C").await, None);
    let page = async |tenant: &TenantId, after: Option<&'static str>| {
        let listed = tx!(home, read, [tenant], |tx| secrets::list(tx, &tenant, after, 10).await);
        listed.into_iter().map(|l| l.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(&tenant, None).await, ["A", "B"]);
    assert_eq!(page(&tenant, Some("A")).await, ["B"]);
    assert_eq!(page(&other, None).await, Vec::<String>::new());
    let (count, foreign, own) = tx!(home, read, [tenant], |tx| Ok((
        secrets::count(tx, &tenant).await?,
        secrets::closed_by_others(tx, "k2").await?,
        secrets::closed_by_others(tx, "k1").await?
    )));
    assert_eq!((count, foreign, own), (2, 2, 0));
    let delete = async |tenant: &TenantId| {
        let name = name("B");
        tx!(home, write, [tenant, name], |tx| secrets::delete(tx, &tenant, &name).await)
    };
    assert!(!delete(&other).await);
    assert!(delete(&tenant).await);
    assert!(!delete(&tenant).await);
    assert_eq!(page(&tenant, None).await, ["A"]);
}

pub(crate) async fn a_fact_makes_one_parcel_for_each_webhook_that_wants_it(home: &Home) {
    let (tenant, other, ada) = (cast::tenant(), cast::other_tenant(), EntityId::mint());
    let now = tx!(home, write, [], |tx| tx.now().await);
    let hook = |wanted: Wanted| Webhook {
        id: WebhookId::mint(),
        url: "https://hooks.example/x".to_owned(),
        wanted,
        sealed: Sealed { bytes: vec![1, 2, 3], key_id: "k1".to_owned() },
        created_at: now,
        last_at: None,
        last_status: None,
        failures: 0,
        given_up: 0,
    };
    let all = hook(Wanted { waiting: true, completed: true, failed: true });
    let ends = hook(Wanted { completed: true, ..Wanted::default() });
    for (tenant, hook) in [(&tenant, &all), (&tenant, &ends), (&other, &all)] {
        tx!(home, write, [tenant, hook], |tx| webhooks::insert(tx, &tenant, &hook).await);
    }
    let announce = async |name: &'static str, completed: bool| {
        tx!(home, write, [tenant, ada], |tx| {
            let fact = if completed { Fact::Completed } else { Fact::Waiting { of: Some(&ada) } };
            webhooks::announce(tx, &tenant, fact, name, &json!({"n": 1})).await
        });
    };
    let taken = async || {
        let taken = tx!(home, write, [], |tx| {
            let later = tx.now().await?.plus_millis(3_600_000);
            cast::take(tx, later, 10).await
        });
        let mut ids: Vec<(String, String)> =
            taken.into_iter().map(|p| (p.tenant.to_string(), format!("{} {}", p.id, p.payload))).collect();
        ids.sort();
        ids
    };
    announce("run_1:5", true).await;
    announce("run_1:5", true).await;
    let mut expected: Vec<(String, String)> =
        [&all, &ends].map(|hook| (tenant.to_string(), format!("run_1:5:{} {{\"n\":1}}", hook.id))).into();
    expected.sort();
    assert_eq!(taken().await, expected, "each address once, and only of this tenant");

    announce("run_1:6", false).await;
    let only = (tenant.to_string(), format!("run_1:6:{} {{\"n\":1}}", all.id));
    assert_eq!(taken().await, [only]);
    let client = Client {
        id: ClientId::mint(),
        entity: Some(ada.clone()),
        kind: "browser".to_owned(),
        name: None,
        capabilities: None,
        last_seen: now,
    };
    tx!(home, write, [tenant, client], |tx| clients::put(tx, &tenant, &client).await);
    announce("run_1:7", false).await;
    assert_eq!(taken().await, [], "who is there hears of it without a webhook");

    let due = tx!(home, read, [], |tx| outbox::next_due(tx, &cast::owner("a")).await);
    assert!(due.is_some_and(|due| due > now));
    let note = async |status, delivered, given_up| {
        let (id, attempt) = (all.id.clone(), Attempt { status, delivered, given_up });
        tx!(home, write, [tenant, id], |tx| webhooks::note(tx, &tenant, &id, attempt).await);
        let id = all.id.clone();
        let found = tx!(home, read, [tenant, id], |tx| webhooks::get(tx, &tenant, &id).await).unwrap();
        (found.last_status, found.failures, found.given_up)
    };
    assert_eq!(note(Some(500), false, false).await, (Some(500), 1, 0));
    assert_eq!(note(None, false, true).await, (None, 2, 1));
    assert_eq!(note(Some(204), true, false).await, (Some(204), 0, 1));
    let id = ends.id.clone();
    assert!(!tx!(home, write, [other, id], |tx| webhooks::delete(tx, &other, &id).await));
    assert!(tx!(home, write, [tenant, id], |tx| webhooks::delete(tx, &tenant, &id).await));
    let left = tx!(home, read, [tenant], |tx| webhooks::list(tx, &tenant).await);
    assert_eq!(left.iter().map(|w| &w.id).collect::<Vec<_>>(), [&all.id]);
}
