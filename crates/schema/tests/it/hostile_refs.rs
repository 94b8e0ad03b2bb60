//! X1: no spelling of a reference makes the process open a socket or a file.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolyard_schema::{Limits, SchemaError, ToolSchema};

use crate::object;

const ORACLE: &str = "S3CRET-ORACLE-VALUE";

/// A listener that is never served: what connected waits in its queue until it is counted.
struct Canary {
    listener: TcpListener,
    port: u16,
}

impl Canary {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    fn connections(&self) -> usize {
        let mut count = 0;
        loop {
            match self.listener.accept() {
                Ok(_) => count += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A file that tells whether it was read, where the file system keeps access times.
struct Oracle {
    path: PathBuf,
}

impl Oracle {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("toolyard-{}-{name}.json", std::process::id()));
        fs::write(&path, json!({ "const": ORACLE }).to_string()).unwrap();
        let oracle = Self { path };
        oracle.age();
        oracle
    }

    fn age(&self) {
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let times = fs::FileTimes::new().set_accessed(old);
        let file = fs::File::options().write(true).open(&self.path).unwrap();
        file.set_times(times).unwrap();
    }

    fn was_read(&self) -> bool {
        let accessed = fs::metadata(&self.path).unwrap().accessed().unwrap();
        accessed > SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_001)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// Reference spellings that lead out of the document.
fn spellings(port: u16, file: &Path) -> Vec<String> {
    let host = format!("127.0.0.1:{port}");
    let file = file.to_str().unwrap();
    let mut all: Vec<String> = [
        "http://{h}/latest/meta-data",
        "HTTP://{h}/",
        "hTTp://{h}/a",
        "https://{h}/a",
        "http://{h}",
        "http://{h}/#",
        "http://{h}/a#/definitions/x",
        "http://{h}/a#anchor",
        "http://user:pass@{h}/",
        "http://{h}@evil.example/",
        "http://localhost:{p}/",
        "http://[::ffff:127.0.0.1]:{p}/",
        "http://[::1]:{p}/",
        "http://2130706433:{p}/",
        "http://0x7f.1:{p}/",
        "http://0177.0.0.1:{p}/",
        "http://127.1:{p}/",
        "http://0:{p}/",
        "//{h}/a",
        "///{h}/a",
        "http:/{h}/a",
        "http:{h}/a",
        "http:\\\\{h}\\a",
        "\\\\{h}\\a",
        " http://{h}/",
        "http://{h}/ ",
        "\thttp://{h}/",
        "\nhttp://{h}/",
        "http\u{3a}//{h}/",
        "http://{h}/%2e%2e/a",
        "http://{h}/?a=#b",
        "ws://{h}/",
        "ftp://{h}/a",
        "gopher://{h}/_a",
        "dict://{h}/a",
        "ldap://{h}/a",
        "jar:http://{h}/a!/b",
        "url:http://{h}/",
        "view-source:http://{h}/",
        "json-schema://{h}/a",
        "json-schema:///",
        "json-schema:///other",
        "urn:example:other",
        "urn:uuid:00000000-0000-0000-0000-000000000000",
        "tag:a,2026:b",
        "file://{f}",
        "file:{f}",
        "FILE://{f}",
        "file://localhost{f}",
        "file:////{f}",
        "file://127.0.0.1{f}",
        "file://{f}#/const",
        "{f}",
        "..{f}",
        "../../../../../..{f}",
        "./other.json",
        "other.json",
        "other.json#/a",
        "?query",
        "/absolute",
        "/definitions/a",
        "definitions/a",
        "%23/definitions/a",
        "%68ttp://{h}/",
        "\u{FF03}/definitions/a",
        " #/definitions/a",
        "\u{200B}#/definitions/a",
        "\u{FEFF}#",
        "",
        ".",
        "a:b",
        "data:application/json,{}",
        "data:application/json;base64,e30=",
        "about:blank",
        "javascript:1",
        "blob:null/1",
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/meta/core#/$defs/anchorString",
    ]
    .iter()
    .map(|text| text.replace("{h}", &host).replace("{p}", &port.to_string()).replace("{f}", file))
    .collect();
    all.dedup();
    all
}

/// Places where a validator might follow a reference.
fn placements(reference: &str) -> Vec<Value> {
    vec![
        object(&json!({"p": {"$ref": reference}})),
        json!({"type": "object", "properties": {}, "$ref": reference}),
        json!({"type": "object", "properties": {}, "allOf": [{"$ref": reference}]}),
        json!({"type": "object", "properties": {}, "$defs": {"unused": {"$ref": reference}}}),
        json!({"type": "object", "properties": {}, "definitions": {"x": {"items": {"$ref": reference}}}}),
        json!({"type": "object", "properties": {}, "x-unknown": {"deep": [{"$ref": reference}]}}),
        json!({"type": "object", "properties": {}, "contentSchema": {"$ref": reference}}),
        json!({"type": "object", "properties": {}, "components": {"schemas": {"a": {"$ref": reference}}}}),
        object(&json!({"p": {"$dynamicRef": reference}})),
        object(&json!({"p": {"$recursiveRef": reference}})),
        object(&json!({"p": {"if": {"not": {"$ref": reference}}}})),
        object(&json!({"p": {"dependencies": {"a": {"$ref": reference}}}})),
        object(&json!({"p": {"items": [{"$ref": reference}], "additionalItems": {"$ref": reference}}})),
    ]
}

fn refused_as_a_reference(error: &SchemaError) -> bool {
    matches!(error.code(), "schema_external_ref" | "schema_keyword_refused" | "schema_ref_target")
}

#[test]
fn x1_no_spelling_of_a_reference_connects_or_reads() {
    let canary = Canary::new();
    let oracle = Oracle::new("refs");
    let spellings = spellings(canary.port, &oracle.path);
    assert!(spellings.len() >= 50, "{}", spellings.len());
    for reference in &spellings {
        for schema in placements(reference) {
            for limits in [Limits::request(), Limits::trusted()] {
                let error = ToolSchema::compile(&schema, &limits).expect_err(&format!("compiled: {schema}"));
                assert!(refused_as_a_reference(&error), "{schema}: {error}");
                assert!(!error.to_string().contains(ORACLE));
                assert!(!error.to_string().contains("127.0.0.1"), "{error}");
            }
        }
    }
    assert_eq!(canary.connections(), 0);
    assert!(!oracle.was_read());
}

/// A base that would turn `#/…` or a bare name into a remote reference.
#[test]
fn x1_identifiers_cannot_move_the_base() {
    let canary = Canary::new();
    let oracle = Oracle::new("base");
    let bases = [
        format!("http://127.0.0.1:{}/base/", canary.port),
        format!("file://{}", oracle.path.display()),
        "urn:x".to_owned(),
        "#".to_owned(),
        String::new(),
    ];
    for base in &bases {
        let nested = [
            object(&json!({"p": {"$id": base, "$ref": "#/properties/q"}, "q": {}})),
            json!({"type": "object", "$defs": {"a": {"$id": base, "type": "string"}},
                   "properties": {"p": {"$ref": "#/$defs/a"}}}),
            object(&json!({"p": {"allOf": [{"$id": base}]}})),
        ];
        for schema in nested {
            let error = ToolSchema::compile(&schema, &Limits::trusted()).unwrap_err();
            assert_eq!(error.code(), "schema_keyword_refused", "{schema}");
        }
        // At the root it is a name and nothing else.
        let named = json!({
            "$id": base, "id": base, "type": "object", "$defs": {"a": {"type": "string"}},
            "properties": {"p": {"$ref": "#/$defs/a"}, "q": {"id": base}}
        });
        let schema = ToolSchema::compile(&named, &Limits::trusted()).unwrap();
        assert!(schema.check(&json!({"p": "x"})).is_ok());
        assert!(schema.check(&json!({"p": 1})).is_err());
    }
    assert_eq!(canary.connections(), 0);
    assert!(!oracle.was_read());
}

/// In data a reference is text, and stays text.
#[test]
fn x1_references_in_data_are_inert() {
    let canary = Canary::new();
    let oracle = Oracle::new("data");
    let remote = json!({"$ref": format!("http://127.0.0.1:{}/x", canary.port)});
    let local = json!({"$ref": format!("file://{}", oracle.path.display())});
    let schema = object(&json!({
        "a": {"const": remote}, "b": {"enum": [local, 1]}, "c": {"default": remote},
        "d": {"examples": [local]}
    }));
    for limits in [Limits::request(), Limits::trusted()] {
        let schema = ToolSchema::compile(&schema, &limits).unwrap();
        assert!(schema.check(&json!({"a": remote, "b": local})).is_ok());
        let errors = schema.check(&json!({"a": ORACLE, "b": ORACLE})).unwrap_err();
        for error in errors {
            assert!(!error.to_string().contains(ORACLE), "{error}");
            assert!(!error.to_string().contains("127.0.0.1"), "{error}");
        }
    }
    assert_eq!(canary.connections(), 0);
    assert!(!oracle.was_read());
}

/// Local references must name a subschema, not any value.
#[test]
fn local_references_to_nothing_or_to_data_are_refused() {
    for reference in [
        "#/nope",
        "#/$defs",
        "#/$defs/a/enum/0",
        "#/$defs/a/type",
        "#/properties",
        "#nope",
        "#/$defs/a/",
        "#//",
        "#/$defs/%FF",
        "#/$defs/%",
        "#/$defs/%2",
        "#/$defs/a%2Fenum",
        "#/x-data/schema",
        "#/$defs/b/default",
        "# ",
        "##",
        "#/$defs/a#",
    ] {
        let schema = json!({
            "type": "object",
            "$defs": {"a": {"enum": [{"type": "string"}]}, "b": {"default": {"type": "string"}}},
            "x-data": {"schema": {"type": "string"}},
            "properties": {"p": {"$ref": reference}}
        });
        let error = ToolSchema::compile(&schema, &Limits::trusted()).unwrap_err();
        assert_eq!(error.code(), "schema_ref_target", "{reference}");
        assert_eq!(
            error.to_string(),
            "/properties/p/$ref refers to something that is not a subschema of this schema"
        );
    }
}

/// The instruments of this file can see what they look for.
#[test]
fn the_canary_and_the_oracle_notice_a_visit() {
    let canary = Canary::new();
    drop(TcpStream::connect(("127.0.0.1", canary.port)).unwrap());
    assert_eq!(canary.connections(), 1);
    assert_eq!(canary.connections(), 0);

    let oracle = Oracle::new("control");
    assert!(!oracle.was_read());
    assert!(fs::read_to_string(&oracle.path).unwrap().contains(ORACLE));
    if !oracle.was_read() {
        eprintln!("this file system keeps no access times: the oracle shows only echoes");
    }
}
