//! Generated files that only the binary can make are committed and current.

use crate::gateway::{Folder, toolyard};

fn printed(words: [&str; 2]) -> String {
    let output = toolyard(Folder::new().path()).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn committed(name: &str) -> String {
    let file = format!("{}/../../api/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).unwrap_or_default()
}

#[test]
fn api_openapi_json_is_current_or_run_make_codegen() {
    assert!(printed(["config", "openapi"]) == committed("openapi.json"), "run `make codegen`");
}

#[test]
fn api_config_schema_json_is_current_or_run_make_codegen() {
    assert!(printed(["config", "schema"]) == committed("config.schema.json"), "run `make codegen`");
}
