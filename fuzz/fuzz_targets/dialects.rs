//! Any bytes as a request of each protocol: a request or a refusal, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolyard_dialects::{a2a, ag_ui, ai_sdk, openai};

fuzz_target!(|data: (u8, &[u8])| {
    let (which, bytes) = data;
    if which % 6 == 0 {
        let _ = a2a::rpc_request(bytes, None);
        return;
    }
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return };
    match which % 6 {
        1 => drop(ai_sdk::Asked::read(&body)),
        2 => drop(ag_ui::parse(body)),
        3 => drop(openai::chat::parse(body)),
        4 => drop(openai::responses::parse(body)),
        _ => drop(openai::tool_definitions(Some(&body))),
    }
});
