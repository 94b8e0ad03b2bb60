//! What tool definitions and arguments cost: ten typical definitions from JSON to compiled
//! schemas that nobody has seen before (goal: under 1 ms), and a call's arguments against a
//! compiled schema, beside the `jsonschema` crate alone with the same schema (goal: at most 1.5
//! times its processor time).
//!
//! The best of many rounds: what else runs on the machine makes rounds slower, never faster.

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use toolyard_schema::{Limits, NameRule, ToolSchema, validate_tool_definitions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COLD_ROUNDS: usize = 300;
const ROUNDS: usize = 200;
const CHECKS: usize = 500;
const COLD_GOAL_US: f64 = 1_000.0;
const RATIO_GOAL: f64 = 1.5;

/// Tools as applications have them, with arguments that fit.
fn typical() -> Vec<(Value, Value)> {
    let tool = |name: &str, properties: Value, required: Value| {
        json!({"name": name, "description": format!("The tool {name}, as an application describes it."),
            "parameters": {"type": "object", "properties": properties, "required": required}})
    };
    vec![
        (
            tool(
                "get_weather",
                json!({"city": {"type": "string", "description": "A city."},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}),
                json!(["city"]),
            ),
            json!({"city": "Bremen", "unit": "celsius"}),
        ),
        (
            tool(
                "read_file",
                json!({"path": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1}}),
                json!(["path"]),
            ),
            json!({"path": "/tmp/a.txt", "limit": 100}),
        ),
        (
            tool(
                "send_mail",
                json!({"to": {"type": "array", "items": {"type": "string", "format": "email"},
                "minItems": 1}, "subject": {"type": "string", "maxLength": 200}, "body": {"type": "string"}}),
                json!(["to", "subject", "body"]),
            ),
            json!({"to": ["a@example.com", "b@example.com"], "subject": "Hi", "body": "Text of a letter"}),
        ),
        (
            tool(
                "create_event",
                json!({"title": {"type": "string"},
                "when": {"type": "object", "properties": {"start": {"type": "string", "format": "date-time"},
                    "minutes": {"type": "integer", "minimum": 5, "maximum": 1440}}, "required": ["start"]}}),
                json!(["title", "when"]),
            ),
            json!({"title": "Talk", "when": {"start": "2026-11-16T10:00:00Z", "minutes": 30}}),
        ),
        (
            tool(
                "show_chart",
                json!({"points": {"type": "array", "items": {"type": "object", "properties": {
                "x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]}}}),
                json!(["points"]),
            ),
            json!({"points": [{"x": 1, "y": 2.5}, {"x": 2, "y": 3.5}, {"x": 3, "y": 1.0}, {"x": 4, "y": 2}]}),
        ),
        (
            tool(
                "set_slippage",
                json!({"percent": {"type": "number", "minimum": 0, "maximum": 50}}),
                json!(["percent"]),
            ),
            json!({"percent": 0.5}),
        ),
        (
            tool(
                "sql_query",
                json!({"query": {"type": "string"}, "params": {"type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}}}),
                json!(["query"]),
            ),
            json!({"query": "select * from t where a = ? and b = ?", "params": ["x", 7]}),
        ),
        (
            tool(
                "robot_move",
                json!({"joint": {"type": "string", "pattern": "^j[1-6]$"},
                "angle": {"type": "number", "minimum": -180, "maximum": 180}, "fast": {"type": "boolean"}}),
                json!(["joint", "angle"]),
            ),
            json!({"joint": "j3", "angle": 42.5, "fast": false}),
        ),
        (tool("get_selection", json!({}), json!([])), json!({})),
        (
            tool(
                "update_record",
                json!({"id": {"type": "string"}, "fields": {"type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
                    "tags": {"type": "array", "items": {"type": "string"}}},
                "additionalProperties": false}}),
                json!(["id", "fields"]),
            ),
            json!({"id": "r1", "fields": {"name": "Ada", "age": 36, "tags": ["a", "b"]}}),
        ),
    ]
}

fn micros(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

/// The best of some rounds, in microseconds.
fn best(rounds: usize, clock: ClockId, mut round: impl FnMut()) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..rounds {
        let started = micros(clock);
        round();
        least = least.min(micros(clock) - started);
    }
    least
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = typical();
    let definitions: Vec<Value> = tools.iter().map(|(definition, _)| definition.clone()).collect();
    let limits = Limits::request();
    let started = micros(ClockId::Monotonic);
    validate_tool_definitions(&definitions, &limits, NameRule::Chat)?;
    let first = micros(ClockId::Monotonic) - started;
    // Without a cache: every round compiles anew.
    let mut failed = false;
    let mut cold = |clock| {
        best(COLD_ROUNDS, clock, || {
            failed |= validate_tool_definitions(&definitions, &limits, NameRule::Chat).is_err();
        })
    };
    let (wall, cpu) = (cold(ClockId::Monotonic), cold(ClockId::ProcessCPUTime));
    println!(
        "ten definitions, cold: {wall:.0} us (processor {cpu:.0} us, first in the process {first:.0} us)"
    );
    println!("  goal: under {COLD_GOAL_US:.0} us: {}", verdict(!failed && wall < COLD_GOAL_US));

    println!("| tool | ours, ns | jsonschema alone, ns | ratio |");
    println!("|---|---|---|---|");
    let (mut ours, mut theirs) = (0.0, 0.0);
    for (definition, arguments) in &tools {
        let schema = ToolSchema::compile(&definition["parameters"], &limits)?;
        let bare = jsonschema::options().should_validate_formats(true).build(&definition["parameters"])?;
        let (mut fits, mut fits_bare) = (true, true);
        let mine = best(ROUNDS, ClockId::ThreadCPUTime, || {
            for _ in 0..CHECKS {
                fits &= std::hint::black_box(&schema).check(std::hint::black_box(arguments)).is_ok();
            }
        });
        let alone = best(ROUNDS, ClockId::ThreadCPUTime, || {
            for _ in 0..CHECKS {
                fits_bare &= std::hint::black_box(&bare).is_valid(std::hint::black_box(arguments));
            }
        });
        if !fits || !fits_bare {
            return Err(format!("the arguments of {} do not fit", definition["name"]).into());
        }
        let each = |us: f64| us * 1e3 / CHECKS as f64;
        println!(
            "| {} | {:.0} | {:.0} | {:.2} |",
            definition["name"].as_str().unwrap_or_default(),
            each(mine),
            each(alone),
            mine / alone
        );
        ours += mine;
        theirs += alone;
    }
    let ratio = ours / theirs;
    println!("arguments, all tools together: {ratio:.2} times jsonschema alone");
    println!("  goal: at most {RATIO_GOAL}: {}", verdict(ratio <= RATIO_GOAL));
    Ok(())
}

const fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "missed" }
}
