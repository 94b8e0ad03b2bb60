//! Row G14: formulas and small scripts, in the sandbox.

use serde_json::{Value, json};
use toolyard_plugins::sandbox::{Sandbox, Settings};
use toolyard_protocol::agent::execution::Compute;
use toolyard_tools::compute;

async fn compute(input: Value) -> Result<Value, String> {
    compute_as(&Compute::default(), input).await
}

async fn compute_as(config: &Compute, input: Value) -> Result<Value, String> {
    let sandbox = Sandbox::new(Settings::program(env!("CARGO_BIN_EXE_toolyard-tools-worker")));
    let outcome = compute::execute(config, &input, &sandbox).await;
    outcome.map_err(|failure| failure.to_string())
}

async fn result(expression: &str, data: Value) -> Value {
    let input = json!({"expression": expression, "data": data});
    compute(input).await.unwrap_or_else(|error| panic!("{expression}: {error}"))["result"].clone()
}

async fn error(expression: &str, data: Value) -> String {
    let input = json!({"expression": expression, "data": data});
    compute(input).await.expect_err(expression)
}

#[tokio::test]
async fn g14_formulas_have_numbers_texts_and_functions() {
    for (expression, data, expected) in [
        ("round(price*qty,2)", json!({"price": 3.333, "qty": 3}), json!(10)),
        ("score >= 50 ? \"pass\" : \"fail\"", json!({"score": 71}), json!("pass")),
        ("min(3, 1, 2) + max([4, 9])", json!({}), json!(10)),
        ("sum(list) / count(list) === avg(list)", json!({"list": [1, 2, 6]}), json!(true)),
        ("round(1.005, 2)", json!({}), json!(1.01)),
        ("round(-2.5)", json!({}), json!(-3)),
        ("round(1234.5, -2)", json!({}), json!(1200)),
        ("round(1e-9, 3)", json!({}), json!(0)),
        ("!a && b % 4 || 'none'", json!({"a": false, "b": 6}), json!(2)),
        ("'Total: ' + total", json!({"total": 5}), json!("Total: 5")),
        ("data.map((row) => row.n * 2)", json!([{"n": 1}, {"n": 2}]), json!([2, 4])),
        ("data['two words'] + 1", json!({"two words": 1}), json!(2)),
        ("max - min", json!({"max": 9, "min": 3}), json!(6)),
        ("{ total: sum(1, 2) }", json!({}), json!({"total": 3})),
        ("new Date(0).toISOString()", json!({}), json!("1970-01-01T00:00:00.000Z")),
    ] {
        assert_eq!(result(expression, data).await, expected, "{expression}");
    }
}

#[tokio::test]
async fn g14_a_script_has_several_statements_and_returns() {
    let script = "let total = 0;\nfor (const { price, pieces } of rows) total += price * pieces;\n// with tax\nreturn round(total * (1 + tax), 2);";
    let input = json!({
        "operation": "invoice", "expression": script,
        "data": {"rows": [{"price": 2.5, "pieces": 4}, {"price": 1, "pieces": 3}]},
        "parameters": {"tax": 0.19},
    });
    let answer = compute(input).await.unwrap();
    let time = &answer["metadata"]["executionTime"];
    assert!(time.as_f64().is_some_and(|ms| ms > 0.0), "{time}");
    let expected = json!({"success": true, "result": 15.47, "operation": "invoice", "metadata": {"executionTime": time}});
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn g14_what_has_no_value_is_an_error_and_never_null() {
    for (expression, data, expected) in [
        (
            "a / b",
            json!({"a": 1, "b": 0}),
            "the result is Infinity; something is divided by zero, or too large",
        ),
        ("a / b", json!({"a": 0, "b": 0}), "the result is NaN; a value is missing or is no number"),
        (
            "a / b",
            json!({"a": 1}),
            "b is not defined. The names are a, data, input, parameters and the functions",
        ),
        ("data.b * 2", json!({"a": 1}), "the result is NaN; a value is missing or is no number"),
        (
            "data.b",
            json!({"a": 1}),
            "the result is undefined; a script ends with return, and a field that is read must exist",
        ),
        (
            "[1, 1 / 0]",
            json!({}),
            "the result cannot be written: \"1\" is Infinity; something is divided by zero, or too large",
        ),
        ("sum([1, 'x'])", json!({}), "TypeError: sum: \"x\" is not a number"),
        ("avg([])", json!({}), "RangeError: avg: there are no numbers"),
        (
            "process.exit()",
            json!({}),
            "process is not defined. The names are data, input, parameters and the functions",
        ),
    ] {
        assert_eq!(error(expression, data).await, format!("Compute failed: {expected}"), "{expression}");
    }
    for expression in ["2 3", "1 +", "1); (2", "x y z", "return return"] {
        let error = error(expression, json!({"x": 1})).await;
        assert!(
            error.starts_with("Compute failed: the code is not valid JavaScript: "),
            "{expression}: {error}"
        );
    }
}

#[tokio::test]
async fn g14_names_come_from_the_input_and_the_later_place_wins() {
    let input = json!({"expression": "[a, b, c, typeof operation, parameters.c, input.d ?? 4]", "a": 1, "b": 1, "c": 1,
        "data": {"b": 2, "c": 2}, "parameters": {"c": 3}});
    assert_eq!(compute(input).await.unwrap()["result"], json!([1, 2, 3, "undefined", 3, 4]));
}

#[tokio::test]
async fn g14_the_configuration_fixes_what_is_computed() {
    let fixed = Compute { operation: Some("double".to_owned()), expression: Some("n * 2".to_owned()) };
    let input = json!({"n": 21, "expression": "'mine'", "operation": "other"});
    let answer = compute_as(&fixed, input).await.unwrap();
    assert_eq!((&answer["result"], &answer["operation"]), (&json!(42), &json!("double")));
    let named = Compute { operation: Some("avg".to_owned()), expression: None };
    assert_eq!(compute_as(&named, json!({"data": [1, 2, 6]})).await.unwrap()["result"], json!(3));
    assert_eq!(
        compute(json!({"operation": "sum", "data": {"a": 1, "b": 2}})).await.unwrap()["result"],
        json!(3)
    );
    let error = compute(json!({"operation": "dance"})).await.unwrap_err();
    assert_eq!(
        error,
        "Compute failed: there is no expression, and the operation is none of sum, avg, min, max, count"
    );
}

#[test]
fn g14_a_tool_without_a_schema_gets_one() {
    let open = compute::schema(&Compute::default());
    assert_eq!(open["required"], json!(["expression"]));
    let named = Compute { operation: Some("sum".to_owned()), expression: None };
    assert_eq!(compute::schema(&named)["required"], Value::Null);
    let fixed = compute::schema(&Compute { expression: Some("1".to_owned()), operation: None });
    assert_eq!((&fixed["properties"]["expression"], &fixed["required"]), (&Value::Null, &Value::Null));
}
