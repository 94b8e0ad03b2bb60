//! X1, X2, X3: any JSON as a tool's schema, and any other as its arguments.
//! Refused, or compiled and checked within its budget; libFuzzer's own clock
//! and memory limit stand behind that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolyard_schema::{Limits, NameRule, ToolDefinition, ToolSchema};

fuzz_target!(|data: (&str, &str)| {
    let (schema, arguments) = data;
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let limits = Limits::request();
    let _ = ToolDefinition::parse(&schema, &limits, NameRule::Config);
    let Ok(compiled) = ToolSchema::compile(&schema, &limits) else { return };
    if let Ok(arguments) = serde_json::from_str::<Value>(arguments) {
        let first = compiled.check(&arguments).is_ok();
        assert_eq!(compiled.check(&arguments).is_ok(), first);
    }
});
