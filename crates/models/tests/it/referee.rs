//! Judges that we did not write: replies built from the vendors' own types are
//! read as they were meant (rows S6, U17, U19), and the vendors' own types
//! accept our requests (rows C4, C5, H4).
//!
//! The judge is a Python program with the vendors' packages, which
//! `scripts/setup-referees` installs. Its tests fail without it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolyard_models::embed::Batch;
use toolyard_models::images::Paint;
use toolyard_models::wire::Refusal;
use toolyard_models::{
    ChatTurn, Chunk, EmbedRequest, ImageRequest, ModelError, Purpose, Request, embed, images,
};

use crate::corpus::{corpus, hosted};
use crate::fixtures::Outcome;
use crate::vendors::{VENDORS, Vendor, error_word, folder, remembered};

/// The Python with the vendors' packages. A proof that is not there is no
/// proof: only who says `TOOLYARD_REFEREES=none` goes without.
pub(crate) fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TOOLYARD_REFEREES").filter(|path| !path.is_empty());
    if named.as_deref().is_some_and(|name| name == "none") {
        println!("TOOLYARD_REFEREES is none: the vendors' own packages are not asked");
        return None;
    }
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/referees-venv/bin/python");
    let python = named.map_or(usual, PathBuf::from);
    assert!(
        python.exists(),
        "the vendors' own packages are not installed at {}: run scripts/setup-referees, \
         or set TOOLYARD_REFEREES=none to go without this proof",
        python.display()
    );
    Some(python)
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

/// Every offset of a short reply. Of longer ones only some hundred, because
/// reading is quadratic here.
fn stride(bytes: &[u8], short: usize) -> usize {
    if bytes.len() <= short { 1 } else { (bytes.len() / 300) | 1 }
}

/// The same reply with other ends of lines. Frames have none.
fn spellings(vendor: &Vendor, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![bytes.to_vec()];
    if vendor.suffix == "sse" {
        let text = std::str::from_utf8(bytes).unwrap();
        all.push(text.replace('\n', "\r\n").into_bytes());
        all.push(text.replace('\n', "\r").into_bytes());
    }
    all
}

fn is_the_same_at_every_split(vendor: &Vendor) {
    for story in vendor.meanings().keys() {
        let whole = vendor.reply(story);
        for (spelling, bytes) in spellings(vendor, &vendor.bytes(story)).iter().enumerate() {
            // Other ends of lines differ only there, and 1-byte writes meet them all.
            let short = if spelling == 0 { 3_000 } else { 1_000 };
            for at in (0..=bytes.len()).step_by(stride(bytes, short)) {
                let (left, right) = bytes.split_at(at);
                let split = (vendor.decode)(&[left, right]);
                assert_eq!(split, whole, "{} {story} in spelling {spelling} at {at}", vendor.name);
            }
            let singles: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!((vendor.decode)(&singles), whole, "{} {story}: {spelling}", vendor.name);
        }
    }
}

#[test]
fn s6_replies_of_chat_completions_are_the_same_at_every_split() {
    is_the_same_at_every_split(&VENDORS[0]);
}

#[test]
fn s6_replies_of_responses_are_the_same_at_every_split() {
    is_the_same_at_every_split(&VENDORS[1]);
}

#[test]
fn s6_replies_of_anthropic_are_the_same_at_every_split() {
    is_the_same_at_every_split(&VENDORS[2]);
}

#[test]
fn s6_replies_of_gemini_are_the_same_at_every_split() {
    is_the_same_at_every_split(&VENDORS[3]);
}

#[test]
fn s6_replies_of_bedrock_are_the_same_at_every_split() {
    is_the_same_at_every_split(&VENDORS[4]);
}

/// The canonical lines of every reply, as they are committed.
/// `TOOLYARD_BLESS=1` writes them anew.
#[test]
fn s6_replies_of_the_vendors_own_types_become_exactly_these_lines() {
    for vendor in VENDORS {
        let mut told = String::new();
        for story in vendor.meanings().keys() {
            let reply = vendor.reply(story);
            told.push_str(&format!("# {story}\n{}", reply.lines()));
            if let Some(error) = &reply.error {
                told.push_str(&format!("! {} {error}\n", error.code().as_str()));
            }
        }
        let file = folder().join("../canonical").join(format!("{}.lines", vendor.name));
        if std::env::var_os("TOOLYARD_BLESS").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &told).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(told == kept, "{} says other lines than {}:\n{told}", vendor.name, file.display());
    }
}

/// Row S7: each vendor's own errors mean one of a small set.
#[test]
fn s7_refusals_of_the_vendors_own_types_are_typed() {
    for vendor in VENDORS {
        let refusals = vendor.refusals();
        assert!(refusals.len() >= 9, "{}", vendor.name);
        for (name, refusal) in refusals {
            let headers = refusal["headers"].as_object().unwrap().iter();
            let refused = (vendor.refused)(&Refusal {
                status: u16::try_from(refusal["status"].as_u64().unwrap()).unwrap(),
                headers: headers
                    .map(|(name, value)| (name.clone(), value.as_str().unwrap().into()))
                    .collect(),
                body: refusal["body"].to_string(),
                ..Refusal::default()
            });
            let word = match &refused {
                ModelError::KeyRefused { .. } => "key",
                ModelError::UnknownModel { .. } => "model",
                ModelError::RateLimited { .. } => "rate",
                ModelError::OutOfQuota { .. } => "quota",
                ModelError::ContextTooLong { .. } => "length",
                ModelError::Filtered { .. } => "filter",
                ModelError::RequestRefused { .. } => "request",
                ModelError::Overloaded { .. } => "overloaded",
                other => panic!("{} {name}: {other:?}", vendor.name),
            };
            assert_eq!(word, refusal["meaning"], "{} {name}", vendor.name);
            // What the vendor wrote stays with the operator.
            let text = refusal["body"].to_string();
            let said = refusal["body"]["error"]["message"].as_str().or(refusal["body"]["message"].as_str());
            assert!(!refused.to_string().contains(said.unwrap()), "{} {name}: {refused}", vendor.name);
            assert!(refused.detail().unwrap().contains(&text), "{} {name}", vendor.name);
            let others = ["rate", "quota", "overloaded"].contains(&word);
            assert_eq!(refused.falls_back(), others, "{} {name}", vendor.name);
        }
    }
}

#[test]
fn s6_a_reply_that_is_cut_anywhere_ends_once_and_tells_nothing_new() {
    for vendor in VENDORS {
        for story in vendor.meanings().keys() {
            let bytes = vendor.bytes(story);
            let text = vendor.reply(story).text();
            for at in (0..bytes.len()).step_by(stride(&bytes, 1_000)) {
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
        for (name, request) in hosted(vendor.name, vendor.models[0]) {
            let body = (vendor.encode)(request).body;
            let name = format!("{} {name}", vendor.name);
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
