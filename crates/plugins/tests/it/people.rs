//! Dates and numbers as people write them. The examples are Node's own answers
//! (`scripts/extract-locales.mjs`).

use serde_json::{Value, json};
use toolyard_plugins::sandbox::Job;

use crate::world::{run, sandbox, value};

/// Answers every example in one call and compares what differs.
async fn compare(examples: &str, code: &str) {
    let rows: Vec<Value> = serde_json::from_str(examples).unwrap();
    let expected: Vec<&Value> = rows.iter().map(|row| row.as_array().unwrap().last().unwrap()).collect();
    assert!(rows.len() > 300);
    let answer = sandbox().call(Job::body(code).argument("rows", json!(rows))).await.unwrap();
    let given = answer.value.as_array().unwrap();
    let wrong: Vec<String> = rows
        .iter()
        .zip(given.iter().zip(expected))
        .filter(|(_, (given, expected))| given != expected)
        .map(|(row, (given, _))| format!("{row} but we write {given}"))
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "{} of {}", wrong.len(), rows.len());
}

#[tokio::test]
async fn dates_are_written_as_in_browsers() {
    let code = "return rows.map(([how, locale, options, ms]) => how === 'format'
        ? new Intl.DateTimeFormat(locale, options).format(ms)
        : new Date(ms)[how](locale, options))";
    compare(include_str!("dates.json"), code).await;
}

#[tokio::test]
async fn numbers_are_written_as_in_browsers() {
    let code =
        "return rows.map(([locale, options, value]) => new Intl.NumberFormat(locale, options).format(value))";
    compare(include_str!("numbers.json"), code).await;
}

#[tokio::test]
async fn the_time_of_a_place_is_its_own_through_the_year() {
    let code = "const at = (ms, timeZone) => new Date(ms).toLocaleString('sv-SE', { timeZone });
        return [at(Date.UTC(2026, 2, 29, 0, 59, 59), 'Europe/Berlin'), at(Date.UTC(2026, 2, 29, 1), 'Europe/Berlin'),
            at(Date.UTC(2026, 9, 25, 1), 'Europe/Berlin'), at(0, 'Asia/Kathmandu'), at(0, 'america/new_york'), at(0, '+05:30'),
            at(Date.UTC(1940, 6, 1), 'Europe/London')]";
    let expected = json!([
        "2026-03-29 01:59:59",
        "2026-03-29 03:00:00",
        "2026-10-25 02:00:00",
        "1970-01-01 05:30:00",
        "1969-12-31 19:00:00",
        "1970-01-01 05:30:00",
        "1940-07-01 01:00:00"
    ]);
    assert_eq!(run(code).await.unwrap().value, expected);
}

#[tokio::test]
async fn a_wrong_zone_or_option_is_an_error_and_a_strange_language_is_english() {
    for (code, error) in [
        (
            "new Date(0).toLocaleString('en-US', { timeZone: 'Mars/Base' })",
            "RangeError: Invalid time zone specified: Mars/Base",
        ),
        (
            "new Intl.DateTimeFormat('en', { month: 'big' })",
            "RangeError: Value big out of range for Intl.DateTimeFormat options property month",
        ),
        ("new Intl.DateTimeFormat('not a tag')", "RangeError: Incorrect locale information provided"),
        (
            "new Intl.DateTimeFormat('en', { dateStyle: 'full', day: 'numeric' })",
            "TypeError: dateStyle and timeStyle cannot stand beside single fields",
        ),
        ("new Intl.DateTimeFormat().format(NaN)", "RangeError: Invalid time value"),
        (
            "new Intl.NumberFormat('en', { style: 'currency' })",
            "TypeError: Currency code is required with currency style.",
        ),
    ] {
        assert_eq!(run(&format!("return {code}")).await.unwrap_err().to_string(), error);
    }
    let options = value("new Intl.DateTimeFormat('tlh-QS').resolvedOptions()").await;
    let expected = json!({"locale": "en-US", "calendar": "gregory", "numberingSystem": "latn", "timeZone": "UTC",
        "year": "numeric", "month": "numeric", "day": "numeric"});
    assert_eq!(options, expected);
    assert_eq!(value("new Date(NaN).toLocaleString()").await, json!("Invalid Date"));
    assert_eq!(value("(1234.5).toLocaleString('de-DE')").await, json!("1.234,5"));
}

#[tokio::test]
async fn a_date_comes_in_parts() {
    let code = "new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeZone: 'UTC' }).formatToParts(0)";
    let part = |kind: &str, value: &str| json!({"type": kind, "value": value});
    let expected = json!([
        part("month", "Jan"),
        part("literal", " "),
        part("day", "1"),
        part("literal", ", "),
        part("year", "1970")
    ]);
    assert_eq!(value(code).await, expected);
}
