//! Judges that we did not write: replies built from the vendors' own types are
//! read as they were meant (rows S6, U17, U19), and the vendors' own types
//! accept our requests (rows C4, C5, H4).
//!
//! The judge is a Python program with the vendors' packages. It runs if
//! `TOOLYARD_REFEREES` names its Python, as `scripts/run-tests` sees to.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolyard_models::embed::Batch;
use toolyard_models::images::Paint;
use toolyard_models::{ChatTurn, Chunk, EmbedRequest, ImageRequest, Purpose, Request, embed, images};

use crate::corpus::corpus;
use crate::fixtures::Outcome;
use crate::vendors::{VENDORS, error_word, folder, remembered};

/// The Python with the vendors' packages, or a printed word that there is none.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("TOOLYARD_REFEREES").filter(|path| !path.is_empty());
    if python.is_none() {
        println!("TOOLYARD_REFEREES is not set: the vendors' own packages are not asked");
    }
    python.map(PathBuf::from)
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/referees").join(name)
}

/// What a reader finds in a reply, in the words of `meaning.json`.
fn found(reply: &Outcome, meant: &Value) -> Value {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let (mut calls, mut sources) = (Vec::new(), Vec::new());
    let (mut usage, mut finish) = (Value::Null, Value::Null);
    for chunk in &reply.chunks {
        match chunk {
            Chunk::TextDelta { text: piece } => text.push_str(piece),
            Chunk::ReasoningDelta { text: piece } => reasoning.push_str(piece),
            Chunk::ToolCall { index, name, args_text, vendor_id, .. } => {
                // A vendor that sends values has no text of its own.
                let as_value = meant["calls"][index]["args"].is_object();
                let args = if as_value { serde_json::from_str(args_text).unwrap() } else { json!(args_text) };
                calls.push(json!({ "id": vendor_id, "name": name, "args": args }));
            }
            Chunk::Source { url, title, start, end } => {
                let span = start.zip(*end).map(|(start, end)| [start, end]);
                sources.push(json!({ "url": url, "title": title, "span": span }));
            }
            Chunk::Usage { usage: u } => {
                usage = json!({ "input": u.input_tokens, "output": u.output_tokens });
            }
            Chunk::Finish { reason } => finish = json!(reason),
            Chunk::ReasoningMetadata { .. }
            | Chunk::ToolInputStart { .. }
            | Chunk::ToolInputDelta { .. }
            | Chunk::Opaque { .. }
            | Chunk::Part { .. }
            | Chunk::Metadata { .. } => {}
        }
    }
    if reply.error.is_some() {
        calls.clear();
    }
    json!({ "text": text, "reasoning": reasoning, "calls": calls, "sources": sources,
        "usage": usage, "finish": finish, "error": reply.error.as_ref().map(error_word) })
}

/// The meaning in our words: a call without arguments has empty ones, and both
/// kinds of failure may be tried again.
fn ours(mut meant: Value) -> Value {
    for call in meant["calls"].as_array_mut().unwrap() {
        if call["args"] == "" {
            call["args"] = json!("{}");
        }
    }
    if meant["error"] == "overloaded" || meant["error"] == "broken" {
        meant["error"] = json!("try again");
    }
    meant
}

#[test]
fn s6_u17_u19_replies_of_the_vendors_own_types_are_read_as_they_are_meant() {
    for vendor in VENDORS {
        let meanings = vendor.meanings();
        assert!(meanings.len() >= 14, "{}", vendor.name);
        for (story, meant) in meanings {
            let reply = vendor.reply(&story);
            assert!(reply.ends_once(), "{} {story}: {reply:?}", vendor.name);
            assert_eq!(found(&reply, &meant), ours(meant), "{} {story}", vendor.name);
        }
    }
}

#[test]
fn u14_a_signed_thought_goes_back_to_its_own_vendor_and_to_no_other() {
    const SIGNATURE: &str = "c2lnbmF0dXJlLTE=";
    for speaker in VENDORS {
        for vendor in VENDORS {
            let mut turns = vec![ChatTurn::user("Think")];
            turns.extend(remembered(&speaker.reply("reasoning")));
            turns.push(ChatTurn::user("Go on"));
            let request = Request { model: vendor.models[0].into(), turns, ..Request::default() };
            let body = (vendor.encode)(request).body.to_string();
            // Chat completions sign nothing.
            let own = vendor.name == speaker.name && vendor.name != "openai-chat";
            assert_eq!(body.contains(SIGNATURE), own, "{} to {}: {body}", speaker.name, vendor.name);
        }
    }
}

/// Some hundred offsets of each reply, because reading is quadratic here. Each
/// vendor's own stories try every one.
fn stride(bytes: &[u8]) -> usize {
    (bytes.len() / 300) | 1
}

#[test]
fn s6_replies_are_the_same_at_every_split() {
    for vendor in VENDORS {
        for story in vendor.meanings().keys() {
            let bytes = vendor.bytes(story);
            let whole = vendor.reply(story);
            for at in (0..=bytes.len()).step_by(stride(&bytes)) {
                let (left, right) = bytes.split_at(at);
                assert_eq!((vendor.decode)(&[left, right]), whole, "{} {story} at {at}", vendor.name);
            }
            let singles: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!((vendor.decode)(&singles), whole, "{} {story}", vendor.name);
        }
    }
}

#[test]
fn s6_a_reply_that_is_cut_anywhere_ends_once_and_tells_nothing_new() {
    for vendor in VENDORS {
        for story in vendor.meanings().keys() {
            let bytes = vendor.bytes(story);
            let text = vendor.reply(story).text();
            for at in (0..bytes.len()).step_by(stride(&bytes)) {
                let cut = (vendor.decode)(&[&bytes[..at]]);
                assert!(cut.ends_once(), "{} {story} at {at}: {cut:?}", vendor.name);
                assert!(text.starts_with(&cut.text()), "{} {story} at {at}", vendor.name);
            }
        }
    }
}

#[test]
fn the_fixtures_are_what_the_vendors_packages_write() {
    let Some(python) = python() else { return };
    let fresh = std::env::temp_dir().join(format!("toolyard-referees-{}", std::process::id()));
    let status = Command::new(python).arg("-B").arg(program("fixtures.py")).arg(&fresh).status().unwrap();
    assert!(status.success());
    let (expected, committed) = (files_of(&fresh), files_of(&folder()));
    std::fs::remove_dir_all(&fresh).unwrap();
    assert_eq!(
        committed.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>(),
        "other files than tests/referees/fixtures.py writes"
    );
    for (name, bytes) in expected {
        assert!(committed[&name] == bytes, "{name} is not what tests/referees/fixtures.py writes");
    }
}

fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for room in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        for file in std::fs::read_dir(room.path()).unwrap().map(Result::unwrap) {
            let name = format!("{}/{}", room.file_name().display(), file.file_name().display());
            files.insert(name, std::fs::read(file.path()).unwrap());
        }
    }
    files
}

/// Name → why it was refused.
fn judge(python: &Path, cases: &[Value]) -> BTreeMap<String, Option<String>> {
    let mut child = Command::new(python)
        .arg("-B")
        .arg(program("judge.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = cases.iter().map(|case| format!("{case}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "the judge fell over");
    let verdicts = String::from_utf8(output.stdout).unwrap();
    let verdict = |line: &str| {
        let verdict: Value = serde_json::from_str(line).unwrap();
        let refused = verdict["refused"].as_str().map(str::to_owned);
        (verdict["name"].as_str().unwrap().to_owned(), refused)
    };
    verdicts.lines().map(verdict).collect()
}

#[test]
fn c22_l23_h4_the_vendors_own_types_accept_our_requests() {
    let Some(python) = python() else { return };
    let mut cases = Vec::new();
    for vendor in VENDORS {
        for (model, (name, request)) in
            vendor.models.iter().flat_map(|model| corpus(model).into_iter().map(move |one| (model, one)))
        {
            let body = (vendor.encode)(request).body;
            let name = format!("{} {model} {name}", vendor.name);
            cases.push(json!({ "name": name, "vendor": vendor.name, "body": body }));
        }
    }
    let verdicts = judge(&python, &cases);
    assert_eq!(verdicts.len(), cases.len());
    let refused: Vec<String> =
        verdicts.into_iter().filter_map(|(name, why)| Some(format!("{name}: {}", why?))).collect();
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
}

#[test]
fn the_vendors_own_types_accept_our_questions_for_vectors_and_pictures() {
    let Some(python) = python() else { return };
    let texts = vec!["a".to_owned(), "b ☂".to_owned()];
    let plain = EmbedRequest { model: "m".into(), texts, ..EmbedRequest::default() };
    let full = EmbedRequest { dimensions: Some(256), purpose: Purpose::Query, ..plain.clone() };
    let pictures = |model: &str| {
        let one = ImageRequest::new(model, "a cat");
        [one.clone(), ImageRequest { count: 3, size: Some((1024, 1024)), ..one }]
    };
    let mut cases = Vec::new();
    let mut add = |vendor: &str, body: Value| {
        cases.push(json!({ "name": format!("{} {vendor}", cases.len()), "vendor": vendor, "body": body }));
    };
    for request in [plain, full] {
        add("openai-embeddings", embed::openai::Words.encode(&request).unwrap());
        add("gemini-embeddings", embed::gemini::Words.encode(&request).unwrap());
    }
    for request in [pictures("gpt-image-1"), pictures("dall-e-2")].concat() {
        add("openai-images", images::openai::Words.encode(&request));
    }
    for request in pictures("gemini-2.5-flash-image") {
        add("gemini", images::gemini::Words.encode(&request));
    }
    add("openai-embeddings", json!({ "model": "m", "inputs": [] }));
    add("openai-images", json!({ "model": "m", "prompt": 1 }));
    add("gemini-embeddings", json!({ "requests": [{ "model": "m", "content": { "text": "x" } }] }));
    let verdicts = judge(&python, &cases);
    let refused: Vec<_> =
        verdicts.iter().filter(|(_, why)| why.is_some()).map(|(name, _)| name.as_str()).collect();
    // The last three are wrong on purpose.
    assert_eq!(refused, ["10 openai-embeddings", "11 openai-images", "12 gemini-embeddings"], "{verdicts:?}");
}

/// Without this the tests above could not fail.
#[test]
fn the_judge_refuses_what_is_wrong() {
    let Some(python) = python() else { return };
    let mut cases = Vec::new();
    let mut add = |vendor: &str, what: &str, body: Value| {
        cases.push(json!({ "name": format!("{vendor} {what}"), "vendor": vendor, "body": body }));
    };
    for vendor in VENDORS {
        let corpus = corpus(vendor.models[0]);
        let of = |name: &str| {
            let (_, request) = corpus.iter().find(|(n, _)| *n == name).unwrap();
            (vendor.encode)(request.clone()).body
        };
        let mut unknown = of("plain");
        unknown["no_such_field"] = json!(1);
        add(vendor.name, "unknown field", unknown);
        let mut bare = of("plain");
        bare.as_object_mut().unwrap().retain(|name, _| name == "model");
        add(vendor.name, "without a conversation", bare);
        // A tool's name with a dot, wherever the vendor keeps names.
        let dotted = of("one tool").to_string().replace("\"read_screen\"", "\"read.screen\"");
        add(vendor.name, "bad name", serde_json::from_str(&dotted).unwrap());
    }
    for (name, refused) in judge(&python, &cases) {
        assert!(refused.is_some(), "{name} passed");
    }
}
