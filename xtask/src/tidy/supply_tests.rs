#![allow(clippy::unwrap_used)]

use super::*;

const RULES: &str = r#"
    [licenses]
    allow = ["MIT", "Apache-2.0"]
    [bans]
    multiple-versions = "warn"
    wildcards = "deny"
    deny = [{ crate = "openssl", reason = "TLS is rustls" }]
    [sources]
    unknown-registry = "deny"
    unknown-git = "deny"
"#;

fn made(name: &str) -> Crate {
    Crate {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        licence: Some("MIT OR Apache-2.0".to_owned()),
        source: Some(REGISTRIES[0].to_owned()),
        wildcards: Vec::new(),
    }
}

fn told(rules: &str, crates: &[Crate]) -> Vec<String> {
    check(&Rules::read(rules).unwrap(), crates).iter().map(ToString::to_string).collect()
}

#[test]
fn x19_a_foreign_licence_source_ban_or_wildcard_is_refused() {
    let copyleft = Crate { licence: Some("GPL-3.0".to_owned()), ..made("copyleft") };
    let nameless = Crate { licence: None, ..made("nameless") };
    let garbled = Crate { licence: Some("MIT OR".to_owned()), ..made("garbled") };
    let cloned = Crate { source: Some("git+https://example.org/x".to_owned()), ..made("cloned") };
    let elsewhere = Crate { source: Some("registry+https://example.org".to_owned()), ..made("elsewhere") };
    let loose = Crate { wildcards: vec!["serde".to_owned()], ..made("loose") };
    let own = Crate { source: None, ..made("own") };
    let crates = [made("fine"), own, copyleft, nameless, garbled, cloned, elsewhere, loose, made("openssl")];
    let expected = [
        "Cargo.lock: copyleft 1.0.0: its licence GPL-3.0 is not in deny.toml",
        "Cargo.lock: nameless 1.0.0: it names no licence",
        "Cargo.lock: garbled 1.0.0: its licence MIT OR cannot be read",
        "Cargo.lock: cloned 1.0.0: it comes from git+https://example.org/x",
        "Cargo.lock: elsewhere 1.0.0: it comes from registry+https://example.org",
        "Cargo.lock: loose 1.0.0: it takes any version of serde",
        "Cargo.lock: openssl 1.0.0: it is banned by deny.toml: TLS is rustls",
    ];
    assert_eq!(told(RULES, &crates), expected);
}

#[test]
fn x19_two_versions_are_refused_only_if_the_file_says_so() {
    let crates = [made("syn"), Crate { version: "2.0.0".to_owned(), ..made("syn") }];
    assert_eq!(told(RULES, &crates), Vec::<String>::new());
    let strict = RULES.replace(r#"multiple-versions = "warn""#, r#"multiple-versions = "deny""#);
    assert_eq!(told(&strict, &crates), ["Cargo.lock: syn is built in versions 1.0.0, 2.0.0"]);
}

#[test]
fn x19_a_rule_that_nobody_follows_is_refused() {
    let told = Rules::read("[bans]\nskip = []\n").unwrap_err();
    assert_eq!(told[0].to_string(), "deny.toml: tidy cannot follow `bans.skip`");
}

#[test]
fn x19_the_rules_of_this_repository_are_understood() {
    let rules = Rules::read(include_str!("../../../deny.toml")).unwrap();
    assert!(rules.targets().len() > 1);
    assert!(rules.ban("native-tls").is_some());
    assert!(rules.texts("licenses", "allow").contains(&"MIT".to_owned()));
}
