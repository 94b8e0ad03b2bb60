//! What code finds inside, and what comes back.

use serde_json::json;
use toolyard_plugins::sandbox::{ConsoleLine, Job, Level, SandboxError};

use crate::world::{run, sandbox, value};

#[tokio::test]
async fn a_body_gets_its_arguments_and_returns_a_value() {
    let job = Job::body("const { name } = who; return [`Hello ${name}`, n + 1, await Promise.resolve(list)]")
        .argument("who", json!({"name": "Grüße 🌍"}))
        .argument("n", 41)
        .argument("list", json!([1, null, {"a": 2.5}]));
    let answer = sandbox().call(job).await.unwrap();
    assert_eq!(answer.value, json!(["Hello Grüße 🌍", 42, [1, null, {"a": 2.5}]]));
    assert_eq!(answer.lost, None);
}

#[tokio::test]
async fn a_name_that_is_none_is_refused() {
    for name in ["a b", "1a", "", "a,b", "a=1", "for", "x)", "{a}", "...a", "arguments"] {
        let error = sandbox().call(Job::body("return 1").argument(name, 1)).await.unwrap_err();
        assert_eq!(error, SandboxError::BadName { name: name.to_owned() });
    }
    let job = Job::formula("größe + $a + _b").argument("größe", 1).argument("$a", 2).argument("_b", 3);
    assert_eq!(sandbox().call(job).await.unwrap().value, json!(6));
}

#[tokio::test]
async fn a_formula_is_an_expression_or_statements_with_return() {
    assert_eq!(value("{ a: 1 }").await, json!({"a": 1}));
    assert_eq!(value("1 + 1 // two").await, json!(2));
    assert_eq!(value("(() => { let s = 0; for (const x of [1, 2]) s += x; return s })()").await, json!(3));
    assert_eq!(value("let s = 0; for (const x of [1, 2]) s += x; return s").await, json!(3));
}

#[tokio::test]
async fn what_json_cannot_say_is_named() {
    for (code, name) in [
        ("return", "undefined"),
        ("return 0 / 0", "NaN"),
        ("return () => 1", "a function"),
        ("return -1 / 0", "-Infinity"),
    ] {
        let answer = run(code).await.unwrap();
        assert_eq!((answer.value, answer.lost.as_deref()), (json!(null), Some(name)), "{code}");
    }
    let error = run("const a = {}; a.a = a; return a").await.unwrap_err();
    assert!(matches!(&error, SandboxError::NotJson { message } if message.contains("circular")), "{error}");
    let error = run("return 1n").await.unwrap_err();
    assert!(matches!(error, SandboxError::NotJson { .. }), "{error}");
    let error = sandbox().call(Job::formula("({ list: [1, 1 / 0] })").finite()).await.unwrap_err();
    assert_eq!(error, SandboxError::NotJson { message: "\"1\" is Infinity".to_owned() });
}

#[tokio::test]
async fn what_is_thrown_is_told() {
    let threw = |name: &str, message: &str| SandboxError::Threw {
        name: name.to_owned(),
        message: message.to_owned(),
    };
    assert_eq!(run("throw new TypeError('no')").await.unwrap_err(), threw("TypeError", "no"));
    assert_eq!(run("await Promise.reject(new Error('late'))").await.unwrap_err(), threw("Error", "late"));
    assert_eq!(run("throw 'text'").await.unwrap_err(), threw("Thrown", "text"));
    assert_eq!(run("throw null").await.unwrap_err(), threw("Thrown", "null"));
    assert_eq!(run("return x").await.unwrap_err(), threw("ReferenceError", "x is not defined"));
}

#[tokio::test]
async fn the_console_is_captured_by_level() {
    let code = "console.log('a', 1, { b: [1, 'x'], c: null }); console.warn(new Map([[1, 2]]));
        console.error(undefined, true, 5n); console.debug('%s'); return 1";
    let line = |level, text: &str| ConsoleLine { level, text: text.to_owned() };
    let expected = vec![
        line(Level::Info, "a 1 { b: [ 1, \"x\" ], c: null }"),
        line(Level::Warn, "Map { 1 => 2 }"),
        line(Level::Error, "undefined true 5n"),
        line(Level::Debug, "%s"),
    ];
    assert_eq!(run(code).await.unwrap().console, expected);
}

#[tokio::test]
async fn timers_fire_in_order_and_can_be_cleared() {
    let code = "const said = [];
        setTimeout(() => said.push('late'), 20);
        setTimeout((word) => said.push(word), 0, 'soon');
        clearTimeout(setTimeout(() => said.push('never'), 1));
        queueMicrotask(() => said.push('first'));
        let count = 0;
        await new Promise((done) => { const id = setInterval(() => { if (++count === 3) { clearInterval(id); done() } }, 1) });
        await new Promise((done) => setTimeout(done, 30));
        return [...said, count]";
    assert_eq!(run(code).await.unwrap().value, json!(["first", "soon", "late", 3]));
    let thrown = run(
        "setTimeout(() => { throw new Error('x') }, 0); await new Promise((r) => setTimeout(r, 5)); return 1",
    );
    assert_eq!(thrown.await.unwrap().console[0].text, "Uncaught Error: x");
}

#[tokio::test]
async fn urls_work_as_in_browsers() {
    let code = "const u = new URL('../b?x=1&y=%20z#h', 'https://me:pw@example.com:8443/a/c/d');
        const before = [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash];
        u.searchParams.append('k', 'a b&c'); u.searchParams.delete('x'); u.hash = ''; u.port = '443'; u.pathname = '/ä';
        return [before, String(u), [...new URLSearchParams('?a=1&a=2&b=%C3%A4')], new URLSearchParams({ q: 'ü +' }).toString(),
            URL.canParse('no'), JSON.stringify({ u: new URL('http://a') })]";
    let expected = json!([
        [
            "https://me:pw@example.com:8443/a/b?x=1&y=%20z#h",
            "https://example.com:8443",
            "https:",
            "me",
            "pw",
            "example.com:8443",
            "example.com",
            "8443",
            "/a/b",
            "?x=1&y=%20z",
            "#h"
        ],
        "https://me:pw@example.com/%C3%A4?y=+z&k=a+b%26c",
        [["a", "1"], ["a", "2"], ["b", "ä"]],
        "q=%C3%BC+%2B",
        false,
        "{\"u\":\"http://a/\"}"
    ]);
    assert_eq!(run(code).await.unwrap().value, expected);
    let error = run("new URL('/x')").await.unwrap_err();
    assert_eq!(error.to_string(), "TypeError: Invalid URL");
}

#[tokio::test]
async fn text_bytes_and_base64_go_there_and_back() {
    let code = "const bytes = new TextEncoder().encode('Grüße 🌍');
        const decoder = new TextDecoder();
        const parts = decoder.decode(bytes.subarray(0, 3), { stream: true }) + decoder.decode(bytes.subarray(3));
        let fatal; try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { fatal = e.name }
        return [bytes.length, bytes instanceof Uint8Array, parts, new TextDecoder().decode(new Uint8Array([97, 255])), fatal,
            btoa('hello'), atob('aGVsbG8='), new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97]))]";
    let expected = json!([12, true, "Grüße 🌍", "a\u{fffd}", "TypeError", "aGVsbG8=", "hello", "a"]);
    assert_eq!(run(code).await.unwrap().value, expected);
}

#[tokio::test]
async fn clones_are_deep_and_refuse_code() {
    let code = "const a = { d: new Date(5), m: new Map([[1, { x: 1 }]]), s: new Set([1]), u: new Uint8Array([1, 2]), r: /x/gi };
        a.self = a; const b = structuredClone(a); a.m.get(1).x = 9;
        let refused; try { structuredClone({ f() {} }) } catch (e) { refused = e.name }
        return [b.self === b, b !== a, b.d.getTime(), b.m.get(1).x, b.s.has(1), [...b.u], String(b.r), refused]";
    let expected = json!([true, true, 5, 1, true, [1, 2], "/x/gi", "DataCloneError"]);
    assert_eq!(run(code).await.unwrap().value, expected);
}

#[tokio::test]
async fn randomness_is_random() {
    let code = "const id = crypto.randomUUID(); const a = crypto.getRandomValues(new Uint32Array(8));
        let quota; try { crypto.getRandomValues(new Uint8Array(65537)) } catch (e) { quota = e.name }
        return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id), id !== crypto.randomUUID(),
            a.some((x) => x !== 0), new Set(crypto.getRandomValues(new Uint8Array(65536))).size, quota]";
    assert_eq!(run(code).await.unwrap().value, json!([true, true, true, 256, "QuotaExceededError"]));
}
