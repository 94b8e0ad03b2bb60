//! The command line where something is missing or misspelt: nothing is made,
//! nothing is changed, and one sentence says what to do.

use std::process::{Output, Stdio};

use crate::gateway::{Folder, toolyard};

/// Runs a command that must fail; answers what it said.
fn no(folder: &Folder, env: &[(&str, &str)], args: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        toolyard(folder.path()).args(args).envs(env.iter().copied()).stdin(Stdio::null()).output().unwrap();
    let (out, text) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr).into_owned());
    assert_eq!(status.code(), Some(1), "{args:?}: {out}{text}");
    text
}

#[test]
fn a_listen_that_is_no_address_and_port_is_told_the_form() {
    let folder = Folder::new();
    for (text, example) in [
        ("9872", "Write 127.0.0.1:9872 for this machine alone"),
        (":9872", "Write 127.0.0.1:9872 for this machine alone"),
        ("localhost", "Write 127.0.0.1:8787 for this machine alone"),
        ("localhost:9872", "Write 127.0.0.1:9872 for this machine alone"),
        ("127.0.0.1", "Write 127.0.0.1:8787 for this machine alone"),
        ("127.0.0.1:99999", "\"99999\" is no port: it must be 0 to 65535"),
    ] {
        let said = no(&folder, &[], &["serve", "--listen", text]);
        assert!(
            said.starts_with(&format!("toolyard: listen: {text:?} is not an address and a port (")),
            "{said}"
        );
        assert!(said.contains(example), "{said}");
        assert_eq!(said, no(&folder, &[("TOOLYARD_LISTEN", text)], &["config", "check"]));
    }
    std::fs::write(folder.path().join("toolyard.toml"), "listen = 9872").unwrap();
    let said = no(&folder, &[], &["config", "check"]);
    assert!(said.contains("an address and a port in quotes, as \"127.0.0.1:8787\""), "{said}");
    assert!(!folder.path().join("data").exists());
}
