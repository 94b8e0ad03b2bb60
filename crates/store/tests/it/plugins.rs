//! Curators, versions, installed plugins, pins and revocations.

use serde_json::json;
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{CuratorId, Hash, PluginId};
use toolyard_store::curators::{self, CuratorRow, KeyRow};
use toolyard_store::plugins::{self, Installed, RevocationRow, State, VersionRow};
use toolyard_store::secrets::Sealed;
use toolyard_store::{StoreError, Tx};

use crate::cast;
use crate::home::{Home, tx};

fn plugin() -> PluginId {
    PluginId::parse("time").unwrap()
}

fn version(text: &str) -> PluginVersion {
    PluginVersion::parse(text).unwrap()
}

pub(crate) async fn curators_have_keys_and_a_key_has_one_curator(home: &Home) {
    let tenant = cast::tenant();
    let now = tx!(home, write, [], |tx| tx.now().await);
    let acme = CuratorRow {
        id: CuratorId::parse("acme").unwrap(),
        name: "Acme".to_owned(),
        plugins: json!(["time"]),
        signers: json!(["key_1"]),
        created_at: now,
    };
    let key = KeyRow {
        id: Hash::of(b"key"),
        curator: acme.id.clone(),
        algorithm: "ed25519".to_owned(),
        public_key: "AAAA".to_owned(),
        sealed: None,
        expires_at: Some(now.plus_millis(1)),
        created_at: now,
    };
    let sealed = Sealed { bytes: vec![0, 255, 7], key_id: "master".to_owned() };
    let held = KeyRow {
        id: Hash::of(b"held"),
        sealed: Some(sealed),
        expires_at: None,
        created_at: now.plus_millis(1),
        ..key.clone()
    };
    let put =
        async |row: &CuratorRow| tx!(home, write, [tenant, row], |tx| curators::put(tx, &tenant, &row).await);
    assert!(put(&acme).await);
    let wider = CuratorRow { plugins: json!(["*"]), ..acme.clone() };
    assert!(!put(&wider).await);
    let add = async |row: &KeyRow| {
        tx!(home, try_write, [tenant, row], |tx| curators::add_key(tx, &tenant, &row).await)
    };
    add(&key).await.unwrap();
    add(&held).await.unwrap();
    let twice = add(&key).await;
    assert!(matches!(twice, Err(StoreError::Exists(_))), "{twice:?}");
    let id = acme.id.clone();
    let (list, one, keys) = tx!(home, read, [tenant, id], |tx| Ok((
        curators::list(tx, &tenant).await?,
        curators::get(tx, &tenant, &id).await?,
        curators::keys(tx, &tenant).await?
    )));
    assert_eq!((list, one, keys), (vec![wider.clone()], Some(wider), vec![key, held]));
    for expected in [true, false] {
        let gone = tx!(home, write, [tenant, id], |tx| curators::delete(tx, &tenant, &id).await);
        assert_eq!(gone, expected);
    }
    assert_eq!(tx!(home, read, [tenant], |tx| curators::keys(tx, &tenant).await), []);
}

pub(crate) async fn versions_are_in_the_order_of_semver_and_keep_their_birth(home: &Home) {
    let tenant = cast::tenant();
    let now = tx!(home, write, [], |tx| tx.now().await);
    let row = |text: &str| VersionRow {
        plugin: plugin(),
        version: version(text),
        hash: Hash::of(text.as_bytes()),
        document: json!({"version": text}).to_string(),
        state: State::Submitted,
        report: json!({"nodes": 1}),
        note: String::new(),
        created_at: now,
        updated_at: now,
    };
    let put = async |row: &VersionRow| {
        tx!(home, write, [tenant, row], |tx| plugins::put_version(tx, &tenant, &row).await);
    };
    for text in ["1.9.0", "1.10.0", "1.10.0-rc.1"] {
        put(&row(text)).await;
    }
    let later = now.plus_millis(5);
    let signed = VersionRow { state: State::Signed, created_at: later, updated_at: later, ..row("1.9.0") };
    put(&signed).await;
    let rows = tx!(home, read, [tenant], |tx| plugins::versions(tx, &tenant, &plugin()).await);
    let order: Vec<String> = rows.iter().map(|row| row.version.to_string()).collect();
    assert_eq!(order, ["1.10.0", "1.10.0-rc.1", "1.9.0"]);
    assert_eq!(rows[2], VersionRow { created_at: now, ..signed });
    assert_eq!(tx!(home, read, [tenant], |tx| plugins::known(tx, &tenant, None, 9).await), [plugin()]);
    assert_eq!(tx!(home, read, [tenant], |tx| plugins::known(tx, &tenant, Some("time"), 9).await), []);
}

pub(crate) async fn x12_pins_and_revocations_outlive_what_they_are_about(home: &Home) {
    let tenant = cast::tenant();
    let now = tx!(home, write, [], |tx| tx.now().await);
    let installed = Installed {
        id: plugin(),
        version: version("1.0.0"),
        hash: Hash::of(b"one"),
        document: "{}".to_owned(),
        signed: true,
        tools: json!(["get_time"]),
        broken: json!([]),
        installed_at: now,
        switched_off: false,
    };
    let newer = Installed { version: version("2.0.0"), hash: Hash::of(b"two"), ..installed.clone() };
    for row in [&installed, &newer] {
        tx!(home, write, [tenant, row], |tx| {
            plugins::install(tx, &tenant, &row).await?;
            plugins::pin(tx, &tenant, &row.id, (&row.version, &row.hash)).await
        });
    }
    assert_eq!(
        tx!(home, read, [tenant], |tx| plugins::list(tx, &tenant).await),
        std::slice::from_ref(&newer)
    );
    for (off, found) in [(true, 1), (false, 0)] {
        assert!(tx!(home, write, [tenant], |tx| plugins::switch(tx, &tenant, &plugin(), off).await));
        // An upgrade does not switch it on.
        tx!(home, write, [tenant, newer], |tx| plugins::install(tx, &tenant, &newer).await);
        let rows = tx!(home, read, [tenant], |tx| plugins::list(tx, &tenant).await);
        assert_eq!(rows.iter().filter(|row| row.switched_off).count(), found);
    }
    let other = cast::other_tenant();
    assert!(!tx!(home, write, [other], |tx| plugins::switch(tx, &other, &plugin(), true).await));
    let revocation = |reason: &str| RevocationRow {
        kind: "plugin".to_owned(),
        target: "time".to_owned(),
        version: String::new(),
        reason: reason.to_owned(),
        actor: "cli".to_owned(),
        at: now,
    };
    for (reason, new) in [("first", true), ("second", false)] {
        let row = revocation(reason);
        assert_eq!(tx!(home, write, [tenant, row], |tx| plugins::revoke(tx, &tenant, &row).await), new);
    }
    for expected in [true, false] {
        let gone = tx!(home, write, [tenant], |tx| plugins::uninstall(tx, &tenant, &plugin()).await);
        assert_eq!(gone, expected);
    }
    let (pin, revoked) = tx!(home, read, [tenant], |tx| Ok((
        plugins::pinned(tx, &tenant, &plugin()).await?,
        plugins::revocations(tx, &tenant).await?
    )));
    assert_eq!(pin, Some((newer.version, newer.hash)));
    assert_eq!(revoked, [revocation("first")]);
}

pub(crate) async fn plugins_of_one_tenant_are_nothing_to_another(home: &Home) {
    let (mine, theirs) = (cast::tenant(), cast::other_tenant());
    let now = tx!(home, write, [], |tx| tx.now().await);
    tx!(home, write, [mine], |tx| {
        let (hash, id) = (Hash::of(b"x"), CuratorId::parse("acme").unwrap());
        let row = CuratorRow {
            id: id.clone(),
            name: "a".to_owned(),
            plugins: json!([]),
            signers: json!([]),
            created_at: now,
        };
        curators::put(tx, &mine, &row).await?;
        let key = KeyRow {
            id: hash.clone(),
            curator: id,
            algorithm: "ed25519".to_owned(),
            public_key: String::new(),
            sealed: None,
            expires_at: None,
            created_at: now,
        };
        curators::add_key(tx, &mine, &key).await?;
        let row = Installed {
            id: plugin(),
            version: version("1.0.0"),
            hash: hash.clone(),
            document: "{}".to_owned(),
            signed: false,
            tools: json!([]),
            broken: json!([]),
            installed_at: now,
            switched_off: false,
        };
        plugins::install(tx, &mine, &row).await?;
        plugins::pin(tx, &mine, &plugin(), (&row.version, &hash)).await?;
        let row = VersionRow {
            plugin: plugin(),
            version: version("1.0.0"),
            hash,
            document: "{}".to_owned(),
            state: State::Published,
            report: json!({}),
            note: String::new(),
            created_at: now,
            updated_at: now,
        };
        plugins::put_version(tx, &mine, &row).await?;
        let row = RevocationRow {
            kind: "plugin".to_owned(),
            target: "other".to_owned(),
            version: String::new(),
            reason: "r".to_owned(),
            actor: "cli".to_owned(),
            at: now,
        };
        plugins::revoke(tx, &mine, &row).await
    });
    async fn seen(tx: &mut Tx<'_>, t: &toolyard_protocol::TenantId) -> Result<[usize; 9], StoreError> {
        let one = usize::from;
        let acme = CuratorId::parse("acme").unwrap();
        Ok([
            curators::list(tx, t).await?.len(),
            one(curators::get(tx, t, &acme).await?.is_some()),
            curators::keys(tx, t).await?.len(),
            plugins::list(tx, t).await?.len(),
            one(plugins::get(tx, t, &plugin()).await?.is_some()),
            plugins::versions(tx, t, &plugin()).await?.len(),
            plugins::known(tx, t, None, 9).await?.len(),
            one(plugins::pinned(tx, t, &plugin()).await?.is_some()),
            plugins::revocations(tx, t).await?.len(),
        ])
    }
    let (ours, strangers) =
        tx!(home, read, [mine, theirs], |tx| Ok((seen(tx, &mine).await?, seen(tx, &theirs).await?)));
    assert_eq!((ours, strangers), ([1; 9], [0; 9]));
    let acme = CuratorId::parse("acme").unwrap();
    let did = tx!(home, write, [theirs, acme], |tx| Ok((
        curators::delete(tx, &theirs, &acme).await?,
        plugins::uninstall(tx, &theirs, &plugin()).await?
    )));
    assert_eq!(did, (false, false));
    assert_eq!(tx!(home, read, [mine], |tx| seen(tx, &mine).await), [1; 9]);
}
