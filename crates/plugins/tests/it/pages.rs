//! Rows U25 and 28: what the guides say of plugins is so.

use serde_json::Value;
use toolyard_plugins::bundle::{Candidate, Keyring, Policy};
use toolyard_plugins::shipped::SHIPPED;
use toolyard_protocol::manifest::HookName;

use crate::bundles::NOW;

const HOOKS: [HookName; 9] = [
    HookName::Initialize,
    HookName::OnUserMessage,
    HookName::OnTextChunk,
    HookName::OnTextEnd,
    HookName::OnBeforeToolCall,
    HookName::OnAfterToolCall,
    HookName::OnAgentResponse,
    HookName::OnError,
    HookName::Destroy,
];

fn file(path: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The JSON on a page.
fn samples(page: &str) -> Vec<Value> {
    let text = file(page);
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter_map(|block| serde_json::from_str(block).ok()).collect()
}

#[test]
fn u25_every_hook_and_every_plugin_that_ships_is_on_its_page() {
    let page = file("docs/guides/agent-plugins.md");
    for hook in HOOKS {
        assert!(page.contains(&format!("| `{}` |", hook.as_str())), "{}", hook.as_str());
    }
    for id in SHIPPED {
        assert!(page.contains(&format!("| `{id}` |")), "{id}");
    }
    for name in ["citations", "signed-plugins", "writing-a-client-plugin", "sandbox"] {
        assert!(!file(&format!("docs/guides/{name}.md")).is_empty());
    }
}

#[test]
fn u25_h64_the_documents_on_the_pages_are_plugins() {
    let mut admitted = 0;
    for page in ["docs/guides/agent-plugins.md", "docs/guides/signed-plugins.md"] {
        for sample in samples(page).into_iter().filter(|sample| sample.get("version").is_some()) {
            let candidate = Candidate::read(sample.to_string().as_bytes()).unwrap();
            Keyring::empty().admit(candidate, Policy::Development, NOW).unwrap();
            admitted += 1;
        }
    }
    assert_eq!(admitted, 2);
}

#[test]
fn spec_28_hooks_of_agent_plugins_and_of_client_plugins_have_names_of_their_own() {
    let source = file("packages/client/src/plugin.ts");
    let hooks = source.split("export interface PluginHooks {").nth(1).unwrap().split("\n}").next().unwrap();
    let names: Vec<&str> =
        hooks.lines().filter_map(|line| line.trim().split_once("?(this")).map(|(name, _)| name).collect();
    assert!(names.contains(&"onToolCall") && names.len() >= 5, "{names:?}");
    for hook in HOOKS {
        assert!(!names.contains(&hook.as_str()), "{} is both", hook.as_str());
    }
}
