//! The `compute` tool: a formula or a small script in the sandbox (row G14).
//!
//! Code sees the input's data as names, a few functions, and nothing else. A
//! result that is no number, such as `a / b` with `b` zero, is an error and
//! never a silent null.

use serde_json::{Map, Value, json};
use toolyard_plugins::sandbox::worker::is_name;
use toolyard_plugins::sandbox::{Job, Sandbox, SandboxError};
use toolyard_protocol::agent::execution::Compute;

use crate::ToolFailure;

/// The functions beside JavaScript's own.
const FUNCTIONS: &str = include_str!("compute.js");
/// What the input says about the computation itself; other fields are names.
const OWN: [&str; 4] = ["operation", "expression", "data", "parameters"];
/// Operations that need no expression: they take the numbers of `data`.
const OPERATIONS: [&str; 5] = ["sum", "avg", "min", "max", "count"];
/// Names that an error lists.
const LISTED: usize = 20;

/// The input of a tool whose configuration has no schema.
pub fn schema(compute: &Compute) -> Value {
    let mut properties = json!({
        "operation": {"type": "string", "description": "What is computed, in a word."},
        "data": {"description": "The values. The fields of an object are names in the expression."},
        "parameters": {"type": "object", "description": "Further names and values."},
    });
    if compute.expression.is_some() {
        return json!({"type": "object", "properties": properties});
    }
    properties["expression"] = json!({
        "type": "string",
        "description": "A JavaScript expression, for example round(price * pieces, 2), or statements with \
            return. It has round(x, digits), min, max, sum, avg and Math.",
    });
    let named = compute.operation.as_deref().is_some_and(|operation| OPERATIONS.contains(&operation));
    let mut schema = json!({"type": "object", "properties": properties});
    if !named {
        schema["required"] = json!(["expression"]);
    }
    schema
}

/// Computes. The configuration's expression and operation win over the input's.
pub async fn execute(compute: &Compute, args: &Value, sandbox: &Sandbox) -> Result<Value, ToolFailure> {
    let fixed_or_given = |fixed: &Option<String>, name: &str| {
        fixed.clone().or_else(|| args.get(name).and_then(Value::as_str).map(str::to_owned))
    };
    let operation = fixed_or_given(&compute.operation, "operation");
    let expression = fixed_or_given(&compute.expression, "expression");
    let code = match (expression.filter(|text| !text.trim().is_empty()), operation.as_deref()) {
        (Some(expression), _) => expression,
        (None, Some(operation)) if OPERATIONS.contains(&operation) => format!("{operation}(data)"),
        (None, _) => {
            let known = OPERATIONS.join(", ");
            return Err(failed(&format!("there is no expression, and the operation is none of {known}")));
        }
    };
    let names = names(args);
    let mut job = Job::formula(code).prelude(FUNCTIONS).finite();
    for (name, value) in &names {
        job = job.argument(name.as_str(), value.clone());
    }
    let answer = sandbox.call(job).await.map_err(|error| explain(&error, &names))?;
    if let Some(lost) = answer.lost {
        return Err(failed(&format!("the result is {lost}{}", advice(&lost))));
    }
    #[expect(clippy::cast_precision_loss, reason = "microseconds of one call")]
    let milliseconds = answer.took.as_micros() as f64 / 1000.0;
    Ok(json!({
        "success": true,
        "result": answer.value,
        "operation": operation.unwrap_or_else(|| "compute".to_owned()),
        "metadata": {"executionTime": milliseconds},
    }))
}

/// The names that the expression sees. What stands later wins.
fn names(args: &Value) -> Map<String, Value> {
    let mut names = Map::new();
    let empty = Map::new();
    let fields = |value: Option<&Value>| value.and_then(Value::as_object).unwrap_or(&empty).clone();
    let input = fields(Some(args));
    let own = |name: &str| input.get(name).cloned().unwrap_or_else(|| json!({}));
    // What may be missing is read from here: input.language ?? 'en'.
    names.insert("input".to_owned(), args.clone());
    names.insert("data".to_owned(), own("data"));
    names.insert("parameters".to_owned(), own("parameters"));
    names.extend(
        input.iter().filter(|(name, _)| !OWN.contains(&name.as_str())).map(|(n, v)| (n.clone(), v.clone())),
    );
    names.extend(fields(input.get("data")));
    names.extend(fields(input.get("parameters")));
    // Others are reached as data["such a name"].
    names.retain(|name, _| is_name(name));
    names
}

fn explain(error: &SandboxError, names: &Map<String, Value>) -> ToolFailure {
    match error {
        SandboxError::Threw { name, message } if name == "ReferenceError" => {
            let known: Vec<&str> = names.keys().map(String::as_str).take(LISTED).collect();
            failed(&format!("{message}. The names are {} and the functions", known.join(", ")))
        }
        SandboxError::NotJson { message } => {
            let about = if message.ends_with("Infinity") { "Infinity" } else { "NaN" };
            failed(&format!("the result cannot be written: {message}{}", advice(about)))
        }
        other => failed(&other.to_string()),
    }
}

/// What to look at when the result is no value.
fn advice(lost: &str) -> &'static str {
    match lost {
        "NaN" => "; a value is missing or is no number",
        "Infinity" | "-Infinity" => "; something is divided by zero, or too large",
        "undefined" => "; a script ends with return, and a field that is read must exist",
        _ => "",
    }
}

fn failed(why: &str) -> ToolFailure {
    ToolFailure::TellModel(format!("Compute failed: {why}"))
}
