//! X10: any text as an address of the outside. What can be read has a host, and
//! reads the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_egress::{Only, Opened, Target};

fuzz_target!(|text: &str| {
    let _ = Opened::parse(&[text]);
    let _ = Only::parse(&[text]);
    let Ok(target) = Target::parse(text) else { return };
    let again = Target::parse(target.exposed()).expect("its own words");
    assert_eq!(again.exposed(), target.exposed());
    assert_eq!(again.is_loopback(), target.is_loopback());
    assert!(target.origin().starts_with("http"));
});
