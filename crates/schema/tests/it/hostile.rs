//! X2: schemas made to cost time, memory or stack. Each is refused by name, or compiled and then
//! checked against hostile arguments, and nothing takes long.
//!
//! Wall time is asserted only as a guard against hanging: these are unoptimised builds on busy
//! machines. What bounds the work is the outcome.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_schema::{ArgumentError, Limits, MAX_NODES, ToolSchema};

use crate::{code, object, request, trusted};

mod corpus;

pub(crate) use corpus::nested;
use corpus::{corpus, hostile_arguments, ladder, list, map, with_defs};

#[test]
fn x2_every_hostile_schema_is_refused_by_name_or_cheap() {
    let corpus = corpus();
    assert!(corpus.len() >= 60, "{}", corpus.len());
    let arguments = hostile_arguments();
    let started = Instant::now();
    for (name, schema, expected) in &corpus {
        let begun = Instant::now();
        let outcome = trusted(schema);
        if let Ok(compiled) = &outcome {
            assert!(compiled.nodes() <= MAX_NODES, "{name}");
            for value in &arguments {
                let verdict = compiled.check(value);
                if let Err(errors) = verdict {
                    assert!((1..=20).contains(&errors.len()), "{name}");
                    assert!(!errors.contains(&ArgumentError::Unchecked), "{name}");
                }
            }
        }
        assert_eq!(code(outcome), *expected, "{name}");
        if *expected != "compiled" {
            assert_ne!(code(request(schema)), "compiled", "{name}");
        }
        if std::env::var_os("SHOW_TIMES").is_some() {
            eprintln!("{:>8.1?} {name}", begun.elapsed());
        }
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Set for the process that measures one schema.
#[cfg(target_os = "linux")]
const PROBE: &str = "TOOLYARD_MEMORY_PROBE";

/// Peak memory of each schema that compiles, in a process of its own: no other test is counted,
/// and no memory freed by another schema hides what this one takes.
#[cfg(target_os = "linux")]
#[test]
fn x2_hostile_schemas_stay_below_sixteen_megabytes() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    for (name, schema, expected) in corpus() {
        if expected != "compiled" {
            continue;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hostile::memory_probe", "--nocapture"])
            .env(PROBE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(schema.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains("1 passed"), "{name}: {shown}");
        if std::env::var_os("SHOW_TIMES").is_some() {
            let line = shown.lines().find(|line| line.starts_with("peak")).unwrap_or_default();
            eprintln!("{line} {name}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn memory_probe() {
    // Only the child process of the test above has a schema on its standard input.
    if std::env::var_os(PROBE).is_none() {
        return;
    }
    let kilobytes = |field: &str| -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let schema: Value = serde_json::from_reader(std::io::stdin()).unwrap();
    let arguments = hostile_arguments();
    let before = kilobytes("VmRSS:");
    // Where the peak cannot be reset it is only too high.
    drop(std::fs::write("/proc/self/clear_refs", "5"));
    let compiled = trusted(&schema).unwrap();
    for value in &arguments {
        drop(compiled.check(value));
    }
    let peak = kilobytes("VmHWM:").saturating_sub(before);
    println!("\npeak {peak:>6} KB");
    assert!(peak < 16 * 1024);
}

/// The schema the measurements found: 1,819 bytes, 10 s of CPU per check without this budget.
#[test]
fn x2_the_28_rung_ladder_is_refused_by_any_of_its_budgets() {
    let ladder = ladder(28, |next| json!({"allOf": [next, next]}));
    assert!(ladder.to_string().len() < 2_500);
    assert_eq!(code(trusted(&ladder)), "schema_path_too_long");
}

/// The trap: a chain of local references that overflows the stack, on a small stack.
#[test]
fn x2_the_long_reference_chain_is_refused_on_a_small_stack() {
    let chain = ladder(10_000, |next| next);
    let short = ladder(1_500, |next| next);
    let outcome = std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(move || (code(trusted(&chain)), code(trusted(&short))))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(outcome, ("schema_too_large", "schema_path_too_long"));
}

/// What is accepted must not need more stack than the smallest thread that checks arguments has.
#[test]
fn x2_the_deepest_check_fits_a_one_megabyte_stack() {
    let recursive = trusted(&with_defs(
        &json!({"a": {"$ref": "#/$defs/t"}}),
        &json!({"t": {"allOf": [{"anyOf": [{"oneOf": [
            {"properties": {"a": {"not": {"not": {"$ref": "#/$defs/t"}}}}, "required": ["z"]}
        ]}]}]}}),
    ))
    .unwrap();
    std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(move || {
            let mut costs = Vec::new();
            for levels in 1..64 {
                let value = (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
                costs.push(recursive.check(&value).unwrap_err()[0].code());
            }
            assert_eq!(costs[0], "argument_missing");
            assert_eq!(costs[62], "arguments_too_complex");
        })
        .unwrap()
        .join()
        .unwrap();
}

/// Recursion that meets each value twice would take 2^60 visits; it is priced first.
#[test]
fn x2_recursion_that_doubles_is_refused_at_check_time() {
    let doubling = with_defs(
        &json!({"a": {"$ref": "#/$defs/t"}}),
        &json!({"t": {"allOf": [
            {"properties": {"a": {"$ref": "#/$defs/t"}}},
            {"properties": {"a": {"$ref": "#/$defs/t"}}}
        ]}}),
    );
    let schema = trusted(&doubling).unwrap();
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    assert_eq!(schema.check(&deep(10)), Ok(()));
    let errors = schema.check(&deep(60)).unwrap_err();
    assert_eq!(errors, [ArgumentError::TooComplex]);
    assert_eq!(errors[0].to_string(), "Invalid tool arguments: checking them takes more than 2000000 steps.");
}

/// An error list that is built whole would hold a copy of the text per branch.
#[test]
fn x2_a_refusal_copies_neither_arguments_nor_schema() {
    let branches = object(&json!({"p": {"anyOf": list(300, |_| json!({"maxLength": 1}))}}));
    let schema = trusted(&branches).unwrap();
    let errors = schema.check(&json!({"p": "x".repeat(200_000)})).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].path(), Some("p"));

    let excluded =
        object(&json!({"p": {"items": {"not": {"enum": list(1_000, |n| json!(format!("value {n}")))}}}}));
    let schema = trusted(&excluded).unwrap();
    let errors = schema.check(&json!({"p": list(20_000, |_| json!("value 7"))})).unwrap_err();
    assert_eq!(errors.len(), 20);
    assert!(errors.iter().all(|error| error.to_string().len() < 80));
}

/// Values in memory, which no parser has limited.
#[test]
fn x2_values_built_in_memory_are_refused_within_their_limits() {
    for (schema, expected) in [
        (nested(3_000), "schema_too_nested"),
        (object(&json!({"p": {"enum": vec![0; 1_000_000]}})), "schema_too_large"),
        (object(&json!({"p": {"const": "x".repeat(10_000_000)}})), "schema_too_large"),
    ] {
        let started = Instant::now();
        assert_eq!(code(trusted(&schema)), expected);
        assert!(started.elapsed() < Duration::from_secs(2));
        // Dropping a value recurses as deep as the value: not what is tested here.
        std::mem::forget(schema);
    }
}

/// The codes are an interface; each limit's number is in its text.
#[test]
fn every_limit_is_named_with_its_number() {
    for (schema, number) in [
        (object(&json!({"p": {"const": "x".repeat(70_000)}})), "65536"),
        (nested(17), "16"),
        (nested(40), "64"),
        (ladder(31, |next| next), "32"),
        (object(&json!({"p": {"anyOf": list(5_001, |_| json!({}))}})), "5000"),
        (object(&map(257, |_| json!({}))), "256"),
        (object(&json!({"p": {"enum": list(1_001, |n| json!(n))}})), "1000"),
        (object(&json!({"p": {"pattern": "x".repeat(513)}})), "512"),
        (json!({"type": "object", "patternProperties": map(33, |_| json!({}))}), "32"),
        (object(&json!({"p": {"pattern": "(a{999}){999}"}})), "524288"),
    ] {
        let error = ToolSchema::compile(&schema, &Limits::trusted()).unwrap_err();
        assert!(error.to_string().contains(number), "{error}");
        assert_eq!(error.limit().map(|limit| limit.to_string()).as_deref(), Some(number));
    }
}
