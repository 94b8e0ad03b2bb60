//! Real chat apps against the built gateway: the programs of
//! tests/chat-clients, each with one version of the AI SDK.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the stories of one file with one version of the client.
fn tell(file: &str, version: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let clients = [target.join("chat-clients"), root.join("target/chat-clients")];
    let Some(clients) = clients.into_iter().find(|place| place.join("node_modules").is_dir()) else {
        if std::env::var_os("TOOLYARD_WITHOUT_CHAT_CLIENTS").is_some() {
            eprintln!("left out: the chat clients are not installed");
            return;
        }
        panic!(
            "The chat clients are not installed: run scripts/setup-chat-clients (it needs npm and its registry)"
        );
    };
    let story = root.join("tests/chat-clients").join(file);
    let done = Command::new("node")
        .args(["--test", "--test-reporter=spec"])
        .arg(story)
        .env("TOOLYARD_BIN", env!("CARGO_BIN_EXE_toolyard"))
        .env("CHAT_CLIENTS", clients)
        .env("AI_SDK", version)
        .stdin(Stdio::null())
        .output()
        .expect("node is needed to run the chat clients");
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{told}\n{}", String::from_utf8_lossy(&done.stderr));
}

macro_rules! versions {
    ($($name:ident: $file:literal, $version:literal;)*) => {
        $(#[test]
        fn $name() {
            tell($file, $version);
        })*
    };
}

versions! {
    c2_c7_ai_sdk_5_chats: "stories.test.mjs", "5";
    c2_c7_ai_sdk_6_chats: "stories.test.mjs", "6";
    c2_c7_ai_sdk_7_chats: "stories.test.mjs", "7";
    c2_ai_sdk_5_in_a_page: "page.test.mjs", "5";
    c2_ai_sdk_6_in_a_page: "page.test.mjs", "6";
    c2_ai_sdk_7_in_a_page: "page.test.mjs", "7";
    c2_ai_sdk_7_on_a_socket: "socket.test.mjs", "7";
    c13_ai_sdk_5_asks_as_data: "approvals.test.mjs", "5";
    c13_ai_sdk_6_asks: "approvals.test.mjs", "6";
    c13_ai_sdk_7_asks: "approvals.test.mjs", "7";
    h7_h16_older_clients_read_lines: "lines.test.mjs", "6";
}
