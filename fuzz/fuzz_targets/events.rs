//! Any text as a stored event: read or refused, and what was read says the same
//! when it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_protocol::Event;
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::visible::visible_to;

fuzz_target!(|text: &str| {
    let Ok(event) = Event::decode(text) else { return };
    let again = Event::decode(&event.encode()).expect("its own words");
    assert_eq!(again, event);
    let _ = visible_to(&Viewer::secret(), &event);
});
