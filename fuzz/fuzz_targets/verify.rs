//! A genuine document with a piece of it replaced by any bytes: whatever is
//! admitted does exactly what was signed. And nobody is admitted by a keyring
//! whose private key is gone.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use toolyard_plugins::bundle::{
    Algorithm, Candidate, Curator, CuratorKey, Keyring, Moment, PluginPattern, Policy, SigningKey,
};
use toolyard_protocol::{CuratorId, Hash, Timestamp};

const PLUGIN: &str = include_str!("../../examples/plugins/time.json");

struct World {
    keyring: Keyring,
    genuine: String,
    hash: Hash,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let id = CuratorId::parse("acme").expect("a name");
        let key = SigningKey::generate(id.clone(), Algorithm::Ed25519).expect("a key");
        let signed = key.sign(&Candidate::read(PLUGIN.as_bytes()).expect("a plugin")).expect("a signature");
        let curator = Curator {
            id,
            plugins: vec![PluginPattern::parse("*").expect("a pattern")],
            keys: vec![CuratorKey { public: key.public().clone(), expires_at: None }],
        };
        let keyring = Keyring { curators: vec![curator], ..Keyring::empty() };
        World { keyring, genuine: signed.text(), hash: signed.hash() }
    })
}

fn check(text: &[u8], world: &World) {
    let Ok(candidate) = Candidate::read(text) else { return };
    let moment = Moment::at(Timestamp::from_millis(1_800_000_000_000));
    if let Ok(bundle) = world.keyring.admit(candidate, Policy::Production, moment) {
        assert_eq!(*bundle.hash(), world.hash, "something else was admitted");
    }
}

fuzz_target!(|data: (u16, u16, &[u8])| {
    let (at, length, bytes) = data;
    let world = world();
    check(bytes, world);
    let genuine = world.genuine.as_bytes();
    let start = usize::from(at) % (genuine.len() + 1);
    let end = (start + usize::from(length) % 64).min(genuine.len());
    check(&[&genuine[..start], bytes, &genuine[end..]].concat(), world);
});
