#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use super::*;

const SAMPLE: &[Output] = &[Output { path: "api/sample.json", text: || "{}\n".to_owned() }];

/// A folder of this test's own, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("toolyard-codegen-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_missing_file_is_stale_and_is_written_once() {
    let folder = Folder::new("missing");
    assert_eq!(stale_outputs(&folder.0, SAMPLE), vec!["api/sample.json"]);
    assert_eq!(write_outputs(&folder.0, SAMPLE).unwrap(), 1);
    assert_eq!(stale_outputs(&folder.0, SAMPLE), Vec::<&str>::new());
    assert_eq!(write_outputs(&folder.0, SAMPLE).unwrap(), 0);
}

#[test]
fn an_edited_file_is_stale() {
    let folder = Folder::new("edited");
    write_outputs(&folder.0, SAMPLE).unwrap();
    fs::write(folder.0.join("api/sample.json"), "{ }\n").unwrap();
    assert_eq!(stale_outputs(&folder.0, SAMPLE), vec!["api/sample.json"]);
}

#[test]
fn the_error_names_the_stale_file_and_the_cure() {
    let text = CodegenError::Stale(vec!["api/sample.json"]).to_string();
    assert!(text.contains("api/sample.json") && text.contains("make codegen"), "{text}");
}

#[test]
fn the_committed_files_are_as_generated() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    assert_eq!(stale_outputs(&root, OUTPUTS), Vec::<&str>::new(), "run `make codegen` and commit the result");
}

#[test]
fn the_same_code_gives_the_same_text() {
    for output in OUTPUTS {
        assert_eq!((output.text)(), (output.text)(), "{}", output.path);
    }
}

#[test]
fn every_reference_of_a_schema_leads_somewhere() {
    for text in [schemas::events(), schemas::frames(), schemas::agent_config()] {
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut open = vec![&document];
        let mut followed = 0;
        while let Some(value) = open.pop() {
            if let Some(target) = value.get("$ref").and_then(|target| target.as_str()) {
                let pointer = target.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{target}");
                followed += 1;
            }
            open.extend(value.as_object().into_iter().flat_map(|fields| fields.values()));
            open.extend(value.as_array().into_iter().flatten());
        }
        assert!(followed > 0);
    }
}

#[test]
fn every_event_has_a_form_in_the_schema() {
    let document: serde_json::Value = serde_json::from_str(&schemas::events()).unwrap();
    let forms = document["oneOf"].as_array().unwrap();
    let kinds: Vec<_> =
        forms.iter().map(|form| form["properties"]["type"]["const"].as_str().unwrap()).collect();
    assert_eq!(kinds, toolyard_protocol::Event::KINDS);
}

#[test]
fn a_type_is_laid_out_one_field_per_line() {
    let nothing = |_: &str| false;
    assert_eq!(
        layout::declaration(
            "type A = { a: Array<{ x: 1, y: \"|,\" }>, \n/**\n * Why, so.\n */\nb?: string | null, };",
            &nothing
        ),
        "type A = {\n  a: Array<{ x: 1, y: \"|,\" }>;\n  /** Why, so. */\n  b?: string | null;\n};"
    );
    assert_eq!(
        layout::declaration("type B = { \"by\": \"me\", n: number, } | { \"by\": \"you\", };", &nothing),
        "type B =\n  | {\n    by: \"me\";\n    n: number;\n  }\n  | {\n    by: \"you\";\n  };"
    );
    assert_eq!(layout::declaration("type C = \"a\" | \"b\";", &nothing), "type C = \"a\" | \"b\";");
    assert_eq!(
        layout::declaration("type D = { [key in string]: E };", &nothing),
        "type D = { [key in string]: E };"
    );
    assert_eq!(layout::whole("{ a: 1, b: 2, }", &|name| name == "b"), "{\n  a: 1;\n  b?: 2;\n}");
}
