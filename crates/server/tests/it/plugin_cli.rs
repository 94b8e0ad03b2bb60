//! `toolyard plugin`, with and without a running gateway.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, message, toolyard};
use crate::plugins::{cli, install, production, signed_by, time_plugin, trust};

fn no(folder: &Path, args: &[&str]) -> String {
    let Output { status, stderr, .. } = toolyard(folder).args(args).output().unwrap();
    assert_eq!(status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&stderr).into_owned()
}

fn put_plugin(folder: &Path, version: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins/time.json");
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(folder.join("p.json"), text.replace("1.0.0", version)).unwrap();
}

/// Keys and a signed plugin, as DESIGN writes the commands.
fn made(folder: &Path) {
    put_plugin(folder, "1.0.0");
    let made = cli(folder, &["plugin", "keygen", "--out", "curator.key", "--curator", "acme"]);
    assert_eq!((&made["curatorId"], &made["algorithm"]), (&json!("acme"), &json!("ed25519")));
    cli(folder, &["plugin", "sign", "p.json", "--key", "curator.key", "--out", "signed.json"]);
}

#[test]
fn x12_keygen_sign_and_verify_need_no_gateway_and_verify_says_yes_only_to_what_is_genuine() {
    let folder = Folder::new();
    let at = folder.path();
    made(at);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(at.join("curator.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(
        no(at, &["plugin", "keygen", "--out", "curator.key", "--curator", "acme"]).contains("exists already")
    );
    let verify = ["plugin", "verify", "signed.json", "--key", "curator.key.pub"];
    assert_eq!(cli(at, &verify)["curators"], json!(["acme"]));
    assert!(no(at, &["plugin", "verify", "p.json", "--key", "curator.key.pub"]).contains("Unsigned plugin"));
    let two = ["plugin", "verify", "signed.json", "--key", "curator.key.pub", "--threshold", "2"];
    assert!(no(at, &two).contains("2 curators are needed"));
    // An RSA key beside it makes two.
    cli(at, &["plugin", "keygen", "--out", "rsa.key", "--curator", "beta", "--algorithm", "rsa"]);
    cli(at, &["plugin", "sign", "signed.json", "--key", "rsa.key", "--out", "both.json"]);
    let both = [
        "plugin",
        "verify",
        "both.json",
        "--key",
        "curator.key.pub",
        "--key",
        "rsa.key.pub",
        "--threshold",
        "2",
    ];
    assert_eq!(cli(at, &both)["genuine"], true);
    // Another's key of the same name is not this one's.
    let elsewhere = Folder::new();
    made(elsewhere.path());
    std::fs::copy(elsewhere.path().join("curator.key.pub"), at.join("other.pub")).unwrap();
    assert!(no(at, &["plugin", "verify", "signed.json", "--key", "other.pub"]).contains("Invalid signature"));
    let signed = std::fs::read_to_string(at.join("signed.json")).unwrap();
    for (from, to) in [("'UTC'", "'Mars'"), ("1.0.0", "1.0.1"), ("Time Plugin", "Tame Plugin")] {
        std::fs::write(at.join("forged.json"), signed.replacen(from, to, 1)).unwrap();
        no(at, &["plugin", "verify", "forged.json", "--key", "curator.key.pub"]);
    }
    std::fs::write(at.join("forged.json"), format!("{signed} x")).unwrap();
    no(at, &["plugin", "verify", "forged.json", "--key", "curator.key.pub"]);
    // Nobody signs what the audit forbids, and a public key signs nothing.
    std::fs::write(at.join("evil.json"), signed.replace("new Date()", "eval('1')")).unwrap();
    let said = no(at, &["plugin", "sign", "evil.json", "--key", "curator.key", "--out", "x.json"]);
    assert!(said.contains("the audit forbids it: eval makes code out of text"), "{said}");
    assert!(!at.join("x.json").exists());
    no(at, &["plugin", "sign", "p.json", "--key", "curator.key.pub", "--out", "x.json"]);
    assert!(!at.join("data").exists(), "nothing was opened");
}

fn life(folder: &Path) {
    let list = || cli(folder, &["plugin", "list"])["plugins"].clone();
    assert_eq!(list(), json!([]));
    assert!(
        no(folder, &["plugin", "install", "signed.json"]).contains("nobody here trusts the curator acme")
    );
    assert!(no(folder, &["plugin", "trust", "curator.key", "--plugin", "*"]).contains("ends in .pub"));
    cli(folder, &["plugin", "trust", "curator.key.pub", "--plugin", "acme-*"]);
    assert!(no(folder, &["plugin", "install", "signed.json"]).contains("may not sign this plugin"));
    // The same key, for other plugins.
    let trusted = cli(folder, &["plugin", "trust", "curator.key.pub", "--plugin", "dev-*"]);
    let installed = cli(folder, &["plugin", "install", "signed.json"]);
    assert_eq!((&installed["verified"], &installed["version"]), (&json!(true), &json!("1.0.0")));
    let row: Value = list()[0].clone();
    assert_eq!(
        (&row["id"], &row["verified"], &row["usable"]),
        (&json!("dev-time-plugin"), &json!(true), &json!(true))
    );
    let words = toolyard(folder).args(["plugin", "list"]).output().unwrap();
    let words = String::from_utf8_lossy(&words.stdout).into_owned();
    assert!(words.contains("dev-time-plugin  1.0.0    true      true    acme"), "{words}");
    let key = trusted["keyId"].as_str().unwrap();
    cli(folder, &["plugin", "revoke", "--key", key, "--reason", "stolen"]);
    assert_eq!(list()[0]["usable"], false);
    cli(folder, &["plugin", "uninstall", "dev-time-plugin"]);
    assert!(no(folder, &["plugin", "install", "signed.json"]).contains("was revoked: stolen"));
    cli(
        folder,
        &["plugin", "revoke", "--plugin", "dev-time-plugin", "--version", "1.0.0", "--reason", "old"],
    );
    assert!(no(folder, &["plugin", "install", "signed.json"]).contains("1.0.0 was revoked: old"));
    assert!(no(folder, &["plugin", "uninstall", "dev-time-plugin"]).contains("not found"));
    // What is unsigned is told to be so.
    put_plugin(folder, "2.0.0");
    let words = toolyard(folder).args(["plugin", "install", "p.json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&words.stdout).contains("NOT VERIFIED"), "{words:?}");
}

#[tokio::test]
async fn h60_a_version_that_is_no_longer_the_newest_can_be_revoked() {
    let gateway = Gateway::start().await;
    let folder = gateway.folder.path();
    made(folder);
    cli(folder, &["plugin", "trust", "curator.key.pub", "--plugin", "dev-*"]);
    cli(folder, &["plugin", "install", "signed.json"]);
    put_plugin(folder, "2.0.0");
    cli(folder, &["plugin", "sign", "p.json", "--key", "curator.key", "--out", "newer.json"]);
    cli(folder, &["plugin", "install", "newer.json"]);
    let revoke = |version| {
        ["plugin", "revoke", "--plugin", "dev-time-plugin", "--version", version, "--reason", "it leaks"]
    };
    cli(folder, &revoke("1.0.0"));
    assert!(no(folder, &["plugin", "install", "signed.json"]).contains("1.0.0 was revoked: it leaks"));
    let row = cli(folder, &["plugin", "list"])["plugins"][0].clone();
    assert_eq!((&row["version"], &row["usable"]), (&json!("2.0.0"), &json!(true)), "the newest stays");
    // One that never was is not found.
    let said = no(folder, &revoke("3.0.0"));
    assert!(said.contains("Version 3.0.0 of plugin dev-time-plugin not found"), "{said}");
}

#[test]
fn h60_without_a_gateway_the_commands_work_on_the_database() {
    let folder = Folder::new();
    made(folder.path());
    cli(folder.path(), &["key", "create", "--kind", "secret"]);
    life(folder.path());
}

#[tokio::test]
async fn h60_with_a_gateway_the_commands_go_through_it() {
    let gateway = Gateway::start().await;
    made(gateway.folder.path());
    life(gateway.folder.path());
    let revoked = gateway.get("/api/plugins/revocations").await;
    assert_eq!(revoked["revocations"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn h58_what_is_not_genuine_is_refused_and_logged_with_its_reason() {
    let gateway = production(&[]).await;
    let document = signed_by(gateway.folder.path(), "acme", &time_plugin());
    trust(&gateway, "acme", "dev-*").await;
    for (path, why) in [("/name", "Invalid signature"), ("/tools/0/executorCode", "Content hash mismatch")] {
        let mut forged = document.clone();
        *forged.pointer_mut(path).unwrap() = json!("return 1");
        let (_, body) = install(&gateway, &forged).await;
        assert!(message(&body).starts_with(&format!("{why} for plugin: dev-time-plugin")), "{body}");
        let told = |line: &str| line.contains(why) && line.contains("plugin=dev-time-plugin");
        assert!(gateway.log().lines().any(told), "{}", gateway.log());
    }
}
