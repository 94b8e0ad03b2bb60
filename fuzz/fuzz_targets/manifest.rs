//! Any bytes as a plugin's document: reading and auditing never panics, and
//! what was read once reads the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_plugins::bundle::Candidate;
use toolyard_plugins::bundle::audit::audit;

fuzz_target!(|data: &[u8]| {
    let Ok(candidate) = Candidate::read(data) else { return };
    let again = Candidate::read(candidate.text().as_bytes()).expect("its own text");
    assert_eq!(candidate.hash(), again.hash());
    assert_eq!(candidate.document(), again.document());
    audit(&candidate, Some(&again));
});
