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
