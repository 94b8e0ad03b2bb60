//! What the documentation says, tried on the gateway: the tour of the README,
//! the session of the guide, the sample agents, and lists that must not go stale.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::gateway::{Folder, Gateway, JWT_SECRET, PUBLIC, SECRET};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn json(path: &str) -> Value {
    serde_json::from_str(&text(path)).unwrap()
}

/// The fenced `sh` blocks that follow a comment, in order.
fn marked(page: &str, mark: &str) -> Vec<String> {
    page.split(mark)
        .skip(1)
        .map(|rest| {
            let (_, code) = rest.split_once("```sh\n").expect("a block after the comment");
            code.split_once("\n```").expect("the end of the block").0.to_owned()
        })
        .collect()
}

/// Runs lines as a reader would paste them; answers what they print.
fn bash(gateway: &Gateway, script: &str) -> String {
    let mut command = Command::new("timeout");
    command.args(["60", "bash", "-eu", "-c", script]).current_dir(gateway.folder.path());
    command.envs([("URL", gateway.url.as_str()), ("TOOLYARD_SECRET_KEY", SECRET)]);
    command.envs([("TOOLYARD_PUBLIC_KEY", PUBLIC), ("TOOLYARD_JWT_SECRET", JWT_SECRET)]);
    command.envs([("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")]);
    let done = command.output().expect("bash, curl, sed and timeout");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}\n{errors}\n{said}", done.status);
    said
}

async fn with_samples() -> Gateway {
    let agents = root().join("agents");
    Gateway::start_with(Folder::new(), &[("TOOLYARD_AGENTS_DIR", agents.to_str().unwrap())]).await
}

#[tokio::test]
async fn the_tour_of_the_readme_works_as_it_stands() {
    let blocks = marked(&text("README.md"), "<!-- tour:");
    assert_eq!(blocks.len(), 1);
    let said = bash(&Gateway::start().await, &blocks[0]);
    let count = |what: &str| said.matches(what).count();
    assert_eq!(count("event: run.waiting_tool"), 2, "{said}");
    assert_eq!(count("event: run.completed"), 2, "{said}");
    assert_eq!(count("\"status\":\"accepted\""), 1, "{said}");
    assert!(said.contains("\"output\":{\"deleted\":true,\"success\":true}"), "{said}");
    assert!(!said.contains("\"error\":{"), "{said}");
}

#[tokio::test]
async fn the_session_of_the_guide_works_as_it_stands() {
    let script = marked(&text("docs/guide.md"), "<!-- run -->").join("\n");
    let said = bash(&with_samples().await, &script);
    assert_eq!(said.matches("\"status\":\"accepted\"").count(), 2, "{said}");
    assert!(said.contains("\"path\":\"b.txt\""), "the edited arguments: {said}");
    assert!(said.contains("event: run.completed"), "{said}");
    let repeated: Vec<&str> =
        said.lines().filter(|line| line.contains("\"content\":\"say hello\"")).collect();
    assert_eq!(repeated.len(), 2, "{said}");
    assert_eq!(repeated[0], repeated[1]);
    assert!(!said.contains("\"error\":{"), "{said}");
}

#[tokio::test]
async fn every_sample_agent_is_loaded() {
    let files = std::fs::read_dir(root().join("agents")).unwrap().map(|e| e.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
    let names: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert!(names.contains("assistant"), "{names:?}");
    let listed = with_samples().await.get("/api/agents").await;
    let listed = listed["agents"].as_array().unwrap().iter();
    let listed: BTreeSet<String> = listed.map(|a| a["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(listed, names);
}

#[test]
fn the_guide_names_every_setting_and_its_variable() {
    let schema = json("api/config.schema.json");
    let guide = text("docs/guide.md");
    let mut keys = Vec::new();
    collect_keys(&schema, &schema, "", &mut keys);
    assert!(keys.len() > 30, "{keys:?}");
    // Settings have a row each; those of providers are told in a sentence.
    let row =
        |key: &str| if key.contains('<') { format!("`{key}`") } else { format!("\n| `{key}` | `TOOLYARD_") };
    let missing: Vec<_> = keys.iter().filter(|key| !guide.contains(&row(key))).collect();
    assert!(missing.is_empty(), "docs/guide.md does not name {missing:?}");
    let source = text("crates/server/src/config/env.rs");
    let (source, _) = source.split_once("const BREAKING").unwrap();
    let variables: Vec<&str> = source.split('"').filter(|word| word.starts_with("TOOLYARD_")).collect();
    assert!(variables.len() > 30, "{variables:?}");
    let missing: Vec<_> = variables.iter().filter(|v| !guide.contains(&format!("`{v}`"))).collect();
    assert!(missing.is_empty(), "docs/guide.md does not name {missing:?}");
}

/// The paths of a schema's leaves, such as `limits.burst`.
fn collect_keys(schema: &Value, at: &Value, path: &str, keys: &mut Vec<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let at = match at["$ref"].as_str() {
        Some(to) => schema.pointer(to.trim_start_matches('#')).unwrap(),
        None => at,
    };
    if let Some(fields) = at["properties"].as_object() {
        fields.iter().for_each(|(name, field)| collect_keys(schema, field, &below(name), keys));
    } else if at["additionalProperties"].is_object() {
        collect_keys(schema, &at["additionalProperties"], &below("<name>"), keys);
    } else {
        keys.push(path.to_owned());
    }
}

#[test]
fn every_frame_stands_in_events_md_with_all_its_fields() {
    let page = text("docs/events.md");
    let head = ["type", "runId", "seq", "ts", "smartSpaceId"];
    let frames = json("api/frames.schema.json");
    let frames = frames["anyOf"].as_array().unwrap();
    assert!(frames.len() > 20);
    for frame in frames {
        let fields = frame["properties"].as_object().unwrap();
        let names = match &fields["type"] {
            named if named["const"].is_string() => vec![named["const"].clone()],
            named => named["enum"].as_array().unwrap().clone(),
        };
        let names = names.iter().map(|name| name.as_str().unwrap());
        let words = names.chain(fields.keys().map(String::as_str).filter(|f| !head.contains(f)));
        let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
        let told = page.lines().any(|line| line.starts_with('|') && words.iter().all(|w| line.contains(w)));
        assert!(told, "docs/events.md has no row with {words:?}");
    }
}

#[test]
fn every_error_code_stands_in_errors_md_with_its_status() {
    let page = text("docs/errors.md");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let code = cells.next()?.trim().trim_end_matches('`').to_owned();
        Some((code, cells.next()?.trim().parse::<u64>().ok()?))
    });
    let told: BTreeMap<String, u64> = rows.collect();
    let codes = json("api/errors.json");
    let codes = codes.as_array().unwrap().iter();
    let codes: BTreeMap<String, u64> =
        codes.map(|c| (c["code"].as_str().unwrap().to_owned(), c["status"].as_u64().unwrap())).collect();
    assert_eq!(told, codes);
}

#[test]
fn every_proof_of_reliability_md_exists() {
    let page = text("docs/reliability.md");
    let proofs = page.lines().filter(|line| line.starts_with("scripts/run-tests"));
    let proofs: BTreeMap<&str, &str> = proofs
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let name = words.last().copied().filter(|word| word.matches('_').count() > 2)?;
            let package = words.iter().position(|word| *word == "-p").map(|at| words[at + 1])?;
            Some((name, package))
        })
        .collect();
    assert!(proofs.len() > 30, "{proofs:?}");
    for (name, package) in proofs {
        let folder = if package == "toolyard" { "server" } else { &package["toolyard-".len()..] };
        let mut tests = String::new();
        for file in files_below(&root().join("crates").join(folder).join("tests"), "rs") {
            tests.push_str(&std::fs::read_to_string(file).unwrap());
        }
        let found = [format!("fn {name}("), format!("    {name}: ")].iter().any(|t| tests.contains(t));
        assert!(found, "no test {name} in {package}");
    }
}

/// Each row of the promises has its line, and each test that a line names exists.
#[test]
fn every_row_of_reliability_md_names_tests_that_exist() {
    let page = text("docs/reliability.md");
    let rows = (1..=18).map(|n| format!("D{n}")).chain((1..=8).map(|n| format!("S{n}")));
    for row in rows.chain((1..=20).map(|n| format!("X{n}"))) {
        assert_eq!(page.matches(&format!("\n| {row} |")).count(), 1, "{row}");
    }
    let mut tests = String::new();
    for folder in ["crates", "tests/faults", "xtask"] {
        for file in files_below(&root().join(folder), "rs") {
            tests.push_str(&std::fs::read_to_string(file).unwrap());
        }
    }
    let named = |word: &&str| word.len() > 12 && word.contains('_') && !word.contains([' ', '/', '.']);
    let names: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| "))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(named)
        .collect();
    assert!(names.len() > 80, "only {} names", names.len());
    for name in names {
        let found = [format!("fn {name}("), format!("    {name}: "), format!("::{name},")];
        assert!(found.iter().any(|t| tests.contains(t.as_str())), "no test {name}");
    }
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let root = root();
    let mut pages = files_below(&root.join("docs"), "md");
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|p| root.join(p)));
    let mut links = 0;
    for page in pages {
        let text = prose(&std::fs::read_to_string(&page).unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let text = prose(&std::fs::read_to_string(&target).unwrap());
                let found = text.lines().filter(|l| l.starts_with('#')).any(|l| anchor(l) == heading);
                assert!(found, "{}: {link}", page.display());
            }
        }
    }
    assert!(links > 20, "only {links} links");
}

/// A page without its code.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
}
