//! The second line of defence, tested without the first: what if a reference reached the library?

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::json;

use super::options;

#[test]
fn x1_the_library_fetches_nothing_even_when_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let file = std::env::temp_dir().join(format!("toolyard-compile-{}.json", std::process::id()));
    std::fs::write(&file, json!({ "const": "S3CRET" }).to_string()).unwrap();
    for reference in [
        format!("http://{address}/latest/meta-data"),
        format!("https://{address}/"),
        format!("file://{}", file.display()),
        "urn:elsewhere".to_owned(),
        "other.json".to_owned(),
    ] {
        for schema in [
            json!({ "$ref": reference }),
            json!({ "$id": reference, "properties": { "a": { "$ref": "b.json" } } }),
            json!({ "$dynamicRef": reference }),
        ] {
            let error = options().build(&schema).expect_err(&schema.to_string()).to_string();
            assert!(!error.contains("S3CRET"), "{error}");
        }
        // A dialect of one's own is a document to fetch, too.
        assert!(
            jsonschema::options()
                .with_retriever(super::Refuse)
                .build(&json!({ "$schema": reference }))
                .is_err()
        );
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn x3_the_engine_is_the_linear_one() {
    assert!(options().build(&json!({ "pattern": "(?=a)" })).is_err());
    assert!(options().build(&json!({ "pattern": "(a)\\1" })).is_err());
    assert!(options().build(&json!({ "patternProperties": { "(?=a)": {} } })).is_err());
}
