//! X3: patterns run on a linear engine, within a size, and are priced before they run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{code, object, request, sentences, trusted};

fn with_pattern(pattern: &str) -> Value {
    object(&json!({"p": {"type": "string", "pattern": pattern}}))
}

#[test]
fn x3_look_around_and_back_references_are_refused_by_name() {
    for pattern in [
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        "^(?!.*secret).*$",
        "(a)\\1",
        "(a)(b)\\2",
        "(?<n>a)\\k<n>",
        "^(?=.*[A-Z])(?=.*\\d).{8,}$",
        "((a+)+)\\1$",
        "(?:(?=a))",
    ] {
        for outcome in [request(&with_pattern(pattern)), trusted(&with_pattern(pattern))] {
            let error = outcome.unwrap_err();
            assert_eq!(error.code(), "schema_pattern_unsupported", "{pattern}");
            assert!(error.to_string().contains("/properties/p/pattern"), "{error}");
        }
    }
}

#[test]
fn x3_invalid_and_oversized_patterns_are_refused_with_their_place() {
    for pattern in [
        "(",
        "[",
        "a{2,1}",
        "*a",
        "(?P<",
        "\\",
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "\\p{L}{500}",
        "(?P=n)",
    ] {
        let error = request(&with_pattern(pattern)).unwrap_err();
        assert_eq!(error.code(), "schema_pattern_invalid", "{pattern}");
        assert!(error.to_string().starts_with("the pattern at /properties/p/pattern "), "{error}");
        let names = json!({"type": "object", "properties": {}, "patternProperties": {pattern: {}}});
        assert_eq!(code(request(&names)), "schema_pattern_invalid", "{pattern}");
    }
}

#[test]
fn x3_escapes_and_classes_do_not_look_like_look_around() {
    for pattern in
        ["\\(?=a", "[(?=]a", "[\\]](?:a)", "a\\\\1", "\\x41", "\\d{3}", "(?:a|b)+", "\\$ref", "^[^(?!)]$"]
    {
        assert_eq!(code(request(&with_pattern(pattern))), "compiled", "{pattern}");
    }
}

#[test]
fn x3_pattern_length_is_512_bytes() {
    assert_eq!(code(request(&with_pattern(&"a".repeat(512)))), "compiled");
    let error = request(&with_pattern(&"a".repeat(513))).unwrap_err();
    assert_eq!(error.code(), "schema_pattern_too_long");
    assert_eq!(error.to_string(), "the pattern at /properties/p/pattern is longer than 512 bytes");
    // Bytes, not characters.
    assert_eq!(code(request(&with_pattern(&"é".repeat(257)))), "schema_pattern_too_long");
}

#[test]
fn x3_different_patterns_are_counted_and_equal_ones_are_not() {
    let many = |count: usize, each: fn(usize) -> String| {
        let list: Vec<Value> = (0..count).map(|n| json!({"pattern": each(n)})).collect();
        object(&json!({"p": {"allOf": list}}))
    };
    assert_eq!(code(request(&many(32, |n| format!("a{n}")))), "compiled");
    assert_eq!(code(request(&many(33, |n| format!("a{n}")))), "schema_too_many_patterns");
    assert_eq!(code(request(&many(500, |_| "a".to_owned()))), "compiled");
}

#[test]
fn patterns_mean_what_they_mean_in_javascript() {
    for (pattern, good, bad) in [
        ("^\\d+$", "123", "١٢٣"),
        ("b", "abc", "ac"),
        ("^[\\w.]+$", "a_1.b", "a-b"),
        ("^\\S*$", "ab", "a b"),
        ("^(a|b)$", "a", "c"),
        ("^\\cA$", "\u{1}", "A"),
    ] {
        let schema = request(&with_pattern(pattern)).unwrap();
        assert_eq!(schema.check(&json!({"p": good})), Ok(()), "{pattern}");
        assert_eq!(
            sentences(&schema, &json!({"p": bad})),
            ["Parameter p does not match the required pattern (pattern)"]
        );
    }
}

/// The patterns of the measurements, and worse: each is refused, or checked, or found too dear.
#[test]
fn x3_catastrophic_patterns_answer_at_10_kb() {
    let pseudo_random: String = (0..10_000u64)
        .scan(12_345u64, |state, _| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Some(if state.wrapping_shr(40) & 1 == 1 { 'a' } else { 'b' })
        })
        .collect();
    let texts = ["a".repeat(10_000), format!("{}!", "a".repeat(10_000)), "ab".repeat(5_000), pseudo_random];
    let started = Instant::now();
    let mut checked = 0;
    let mut too_dear = 0;
    for pattern in [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "((a*)*)*b",
        "(.*.*.*.*=.*)+z",
        "^(a?){25}a{25}$",
        "(a|b|ab){1,100}c",
        "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
        ".*a.{100}$",
        "([ab]*a[ab]{60})+c",
        "[ab]*a[ab]{900}c",
        "[ab]*a[ab]{4000}c",
        "(?:[ab]*a[ab]{30}){30}c",
        "^.{1,255}$",
        "^[^<>]{1,255}$",
    ] {
        let schema = match request(&with_pattern(pattern)) {
            Ok(schema) => schema,
            Err(error) => panic!("{pattern}: {error}"),
        };
        for text in &texts {
            checked += 1;
            if let Err(errors) = schema.check(&json!({"p": text})) {
                match errors[0].code() {
                    "arguments_too_complex" => too_dear += 1,
                    "argument_violation" => {}
                    other => panic!("{pattern}: {other}"),
                }
            }
        }
    }
    assert_eq!(checked, 68);
    // Only the widest counted repetitions are too dear for 10 KB.
    assert!((4..=12).contains(&too_dear), "{too_dear}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
