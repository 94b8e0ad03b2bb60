//! Row H59: the automatic part of a review, on the syntax tree.

use serde_json::{Value, json};
use toolyard_plugins::bundle::audit::{Level, Report, audit};

use crate::bundles::{read, time_plugin};

fn with_code(code: &str) -> Value {
    let mut plugin = time_plugin();
    plugin["tools"][0]["executorCode"] = json!(code);
    plugin
}

fn report(code: &str) -> Report {
    audit(&read(&with_code(code)), None)
}

fn rules(report: &Report) -> Vec<(Level, &str, usize)> {
    report.findings.iter().map(|f| (f.level, f.rule.as_str(), f.line)).collect()
}

#[test]
fn h59_good_code_has_a_short_report() {
    let report = audit(&read(&time_plugin()), None);
    assert_eq!(rules(&report), []);
    let code = time_plugin()["tools"][0]["executorCode"].as_str().unwrap().len();
    assert_eq!((report.code_bytes, report.pieces.len(), &report.changes), (code, 1, &None));
    assert!(report.nodes > 20 && report.pieces[0].parses);
}

#[test]
fn h59_what_makes_code_or_hides_is_forbidden() {
    for (code, rule) in [
        ("return eval('1')", "makes-code"),
        ("const f = new Function('return 1'); return f()", "makes-code"),
        ("return (async () => {}).constructor('return 1')()", "makes-code"),
        ("return [].at['constructor']('return 1')()", "makes-code"),
        ("return [][`constructor`]", "makes-code"),
        ("const {constructor: make} = () => {}; return make('1')", "makes-code"),
        ("return ({}).__proto__", "makes-code"),
        ("return WebAssembly.compile(args.bytes)", "makes-code"),
        ("return import('x')", "loads-code"),
        ("return require('fs')", "loads-code"),
        ("with (args) { return x }", "with"),
        ("return globalThis['ev' + 'al']('1')", "hidden-name"),
        ("return globalThis.eval('1')", "makes-code"),
        ("return host('fetch', {})", "asks-the-gateway"),
        ("return fetch('https://x.example')", "fetch-without-permission"),
        ("return window.fetch('https://x.example')", "fetch-without-permission"),
        ("return new WebSocket('wss://x.example')", "reaches-out"),
        ("return '\u{202e}x'", "hidden-characters"),
    ] {
        let report = report(code);
        let found = report.forbidden().any(|finding| finding.rule == rule);
        assert!(found, "{code}: {:?}", report.findings);
    }
}

#[test]
fn h59_a_word_in_a_text_or_a_field_of_that_name_is_no_use_of_it() {
    for code in [
        "return 'eval(1)'",
        "// eval(1)\nreturn 1",
        "return {eval: 1, fetch: 2}",
        "return args.fetch + args.require",
        "const evaluate = (x) => x; return evaluate(1)",
    ] {
        assert_eq!(rules(&report(code)), [], "{code}");
    }
}

#[test]
fn h59_code_is_the_body_of_one_function_and_stays_inside() {
    for code in
        ["} evil(); {", "}; (function () {", "return 1 }\nasync function x(a) {", "2 3", "return (", "/*"]
    {
        let report = report(code);
        assert_eq!(report.broken().collect::<Vec<_>>(), ["get_current_time"], "{code}");
        assert!(report.forbidden().any(|finding| finding.rule == "not-javascript"), "{code}");
    }
    assert!(report("const x = await args.x; return x").pieces[0].parses);
}

#[test]
fn h59_findings_name_the_line_and_notices_forbid_nothing() {
    let noticed = report("const a = 1;\nwhile (true) { if (a) break }\ndebugger;\nreturn localStorage.a");
    assert_eq!(
        rules(&noticed),
        [
            (Level::Notice, "endless-loop", 2),
            (Level::Notice, "debugger", 3),
            (Level::Notice, "far-reaching-name", 4)
        ]
    );
    assert_eq!(noticed.forbidden().count(), 0);
    let long = report(&format!("return atob('{}')", "QUJD".repeat(600)));
    assert_eq!(rules(&long), [(Level::Notice, "long-text", 1)]);
}

#[test]
fn x12_code_that_nests_without_end_does_not_end_the_gateway() {
    for piece in
        ["(", "[", "{", "!", "-", "a=>", "a?a:", "`${", "new ", "x.", "1+", "if(a);else ", "a=", "a**", "-+"]
    {
        let code = piece.repeat((64 << 10) / piece.len());
        let seen = report(&code);
        assert!(seen.pieces[0].bytes > 60_000, "{piece}");
        // Also where it would be right.
        report(&format!("return {}1", piece.repeat((63 << 10) / piece.len())));
    }
}

#[test]
fn h59_the_report_tells_what_is_new_since_the_last_version() {
    let before = time_plugin();
    let mut now = before.clone();
    now["version"] = json!("1.1.0");
    let code = before["tools"][0]["executorCode"].as_str().unwrap();
    now["tools"][0]["executorCode"] = json!(code.replace("'UTC'", "'Europe/Berlin'"));
    let mut more = before["tools"][0].clone();
    more["name"] = json!("get_zone");
    now["tools"].as_array_mut().unwrap().push(more);
    now["permissions"] = json!({"fetch": ["api.example.com"]});
    let report = audit(&read(&now), Some(&read(&before)));
    let changes = serde_json::to_value(report.changes.as_ref().unwrap()).unwrap();
    assert_eq!(
        changes,
        json!({
            "since": "1.0.0", "added": ["get_zone"], "removed": [],
            "changed": [{"piece": "get_current_time", "contract": false, "lines": [
                "- const timezone = args.timezone || 'UTC';",
                "+ const timezone = args.timezone || 'Europe/Berlin';",
            ]}],
            "newHosts": ["api.example.com"], "goneHosts": [],
        })
    );
    assert_eq!(rules(&report), [(Level::Notice, "new-permissions", 0)]);
}
