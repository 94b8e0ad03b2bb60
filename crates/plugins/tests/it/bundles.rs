//! Rows H49 and H56 to H58: documents, keys and signatures that are as they should be.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use toolyard_plugins::bundle::{
    Algorithm, BadDocument, Bundle, Candidate, Curator, CuratorKey, Keyring, Moment, PluginPattern, Policy,
    PublicKey, PublicKeyFile, Refused, SigningKey, Trust,
};
use toolyard_protocol::{CuratorId, Timestamp};

pub(crate) const NOW: Moment = Moment::at(Timestamp::from_millis(1_800_000_000_000));

pub(crate) fn time_plugin() -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plugins/time.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

pub(crate) fn read(value: &Value) -> Candidate {
    Candidate::read(value.to_string().as_bytes()).unwrap()
}

pub(crate) fn curator(name: &str) -> SigningKey {
    SigningKey::generate(CuratorId::parse(name).unwrap(), Algorithm::Ed25519).unwrap()
}

/// The signed document as JSON.
pub(crate) fn signed(value: &Value, by: &SigningKey) -> Value {
    serde_json::from_str(&by.sign(&read(value)).unwrap().text()).unwrap()
}

/// A keyring that trusts these for these plugins.
pub(crate) fn trusting(keys: &[(&SigningKey, &str)]) -> Keyring {
    let curators = keys.iter().map(|(key, plugins)| Curator {
        id: key.public_file().curator_id,
        plugins: vec![PluginPattern::parse(plugins).unwrap()],
        keys: vec![CuratorKey { public: key.public().clone(), expires_at: None }],
    });
    Keyring { curators: curators.collect(), ..Keyring::empty() }
}

pub(crate) fn admit(keyring: &Keyring, value: &Value) -> Result<Bundle, Refused> {
    keyring.admit(read(value), Policy::Production, NOW)
}

#[test]
fn h57_a_genuine_plugin_is_admitted_and_is_what_was_signed() {
    let acme = curator("acme");
    let document = signed(&time_plugin(), &acme);
    assert_eq!(document["curatorId"], "acme");
    let bundle = admit(&trusting(&[(&acme, "*")]), &document).unwrap();
    assert_eq!(bundle.trust(), &Trust::Signed { by: vec![CuratorId::parse("acme").unwrap()] });
    let code = &bundle.tool("get_current_time").unwrap().executor_code;
    assert_eq!(*code, time_plugin()["tools"][0]["executorCode"].as_str().unwrap());
    // A browser's note changes nothing.
    let mut noted = document.clone();
    noted["installedAt"] = json!("2026-11-16T00:00:00.000Z");
    assert_eq!(admit(&trusting(&[(&acme, "*")]), &noted).unwrap().hash(), bundle.hash());
}

#[test]
fn h56_the_content_hash_is_over_the_canonical_tools() {
    let document = signed(&time_plugin(), &curator("acme"));
    let tools = serde_json_canonicalizer::to_string(&document["tools"]).unwrap();
    assert_eq!(document["contentHash"], toolyard_protocol::Hash::of(tools.as_bytes()).as_str());
}

#[test]
fn spec_33_rsa_keys_of_two_thousand_bits_and_more_sign_too() {
    let name = CuratorId::parse("acme").unwrap();
    let rsa = SigningKey::generate(name, Algorithm::RsaPkcs1Sha256).unwrap();
    let document = signed(&time_plugin(), &rsa);
    admit(&trusting(&[(&rsa, "dev-time-plugin")]), &document).unwrap();
    // 1024 bits, as openssl writes them.
    let small = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC7vbqajDw4o6gJy8UtmIbkcpnkO3Kwc4qsEnSZp/TR+fQi62F7\
        9RHWLwmrgaEN5fgV3/wL6AX9aJIBkM4cYLEPR8yjgGn2BgNl8fBIwHfBHqbUaCjDW7Xlh6UxaKLcqSy5eP7pV6KnDA0bbpa9w\
        yTmaGn3g2PfuNqLQvbvVxtC2wIDAQAB";
    let refused = PublicKey::parse(Algorithm::RsaPkcs1Sha256, small).unwrap_err().to_string();
    assert!(refused.contains("2048"), "{refused}");
}

#[test]
fn keys_come_back_from_their_files_and_say_nothing_of_themselves() {
    for algorithm in [Algorithm::Ed25519, Algorithm::RsaPkcs1Sha256] {
        let key = SigningKey::generate(CuratorId::parse("acme").unwrap(), algorithm).unwrap();
        let again = SigningKey::from_file(key.to_file().expose_secret()).unwrap();
        assert_eq!(again.public(), key.public());
        let public = serde_json::to_string(&key.public_file()).unwrap();
        let (name, read) = PublicKeyFile::read(&public).unwrap();
        assert_eq!((name.as_str(), &read), ("acme", key.public()));
        assert!(!format!("{key:?}").contains(key.private().expose_secret()));
        let broken = key.to_file().expose_secret().replace("privateKey", "private");
        let said = SigningKey::from_file(&broken).unwrap_err().to_string();
        assert!(!said.contains(&key.private().expose_secret()[..16]), "{said}");
    }
}

#[test]
fn h49_u32_what_is_missing_or_wrong_is_said() {
    let why = |change: &dyn Fn(&mut Value)| {
        let mut value = time_plugin();
        change(&mut value);
        Candidate::read(value.to_string().as_bytes()).unwrap_err()
    };
    for field in ["id", "name", "tools"] {
        let missing = why(&|v| {
            v.as_object_mut().unwrap().remove(field);
        });
        assert_eq!(missing, BadDocument::Missing, "{field}");
        assert_eq!(missing.to_string(), "Invalid plugin: missing required fields");
    }
    assert_eq!(why(&|v| v["tools"] = json!([])), BadDocument::Missing);
    type Change = (fn(&mut Value), &'static str);
    let changes: [Change; 15] = [
        (|v| v["id"] = json!("Dev-Time"), "id: Invalid plugin id"),
        (|v| v["id"] = json!("sign"), "reserved"),
        (|v| v["version"] = json!("1.0"), "version: \"1.0\" is not a version"),
        (|v| v["version"] = json!("1.0.0+build"), "is not a version"),
        (|v| v["files"] = json!({"a.js": "x"}), "unknown field `files`"),
        (|v| v["tools"][0]["extra"] = json!(1), "unknown field `extra`"),
        (|v| v["tools"][0]["name"] = json!("get time"), "Invalid tool name"),
        (|v| v["tools"] = json!([v["tools"][0], v["tools"][0]]), "get_current_time stands twice"),
        (|v| v["tools"][0]["parameters"] = json!({"type": "string"}), "must be an object schema"),
        (|v| v["tools"][0]["executorCode"] = json!("x".repeat(65_537)), "at most 65536 bytes"),
        (|v| v["permissions"] = json!({"fetch": ["*.example.com"]}), "is not a host"),
        (|v| v["permissions"] = json!({"files": ["/"]}), "unknown field `files`"),
        // Row U32: plugins depend on no other.
        (|v| v["requires"] = json!({"other-plugin": "^1"}), "unknown field `other-plugin`"),
        (|v| v["name"] = json!("Time\u{202e}nigulP"), "characters that nobody sees"),
        (|v| v["hooks"] = json!({"onEverything": "return 1"}), "onEverything"),
    ];
    for (change, said) in changes {
        let text = why(&change).to_string();
        assert!(text.starts_with("Invalid plugin: ") && text.contains(said), "{text}");
    }
}

#[test]
fn h58_development_lets_unsigned_plugins_through_and_production_does_not() {
    let keyring = Keyring::empty();
    let bundle = keyring.admit(read(&time_plugin()), Policy::Development, NOW).unwrap();
    assert_eq!(bundle.trust(), &Trust::Unsigned);
    let refused = admit(&keyring, &time_plugin()).unwrap_err();
    assert_eq!(refused.to_string(), "Unsigned plugin rejected in production: dev-time-plugin");
}

#[test]
fn h60_several_curators_sign_one_document() {
    let (a, b, c) = (curator("a"), curator("b"), curator("c"));
    let document = signed(&signed(&signed(&time_plugin(), &a), &b), &c);
    assert_eq!(document["signatures"].as_array().unwrap().len(), 2);
    let mut keyring = trusting(&[(&a, "*"), (&b, "*"), (&c, "*")]);
    keyring.threshold = 3;
    let bundle = admit(&keyring, &document).unwrap();
    let Trust::Signed { by } = bundle.trust() else { panic!("{bundle:?}") };
    assert_eq!(by.len(), 3);
}
