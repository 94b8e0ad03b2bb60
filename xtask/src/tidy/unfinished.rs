//! Rule: nothing unfinished is committed: no `todo`, no `unimplemented`, no test
//! that is switched off, no note to fix something later. It holds in tests too.

use super::finding::Finding;
use super::source::{RustFile, TextFile};

const NOTE: &str = concat!("FIX", "ME");
/// Files whose text is for machines; documents may speak about the rule.
const COMMENTED: [&str; 12] =
    ["ts", "tsx", "mts", "cts", "js", "mjs", "css", "html", "sql", "sh", "toml", "yml"];
const RUNNERS: [&str; 3] = ["it", "test", "describe"];
const SWITCHES: [&str; 4] = ["skip", "only", "todo", "fixme"];

pub(crate) fn check_rust(file: &RustFile<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |at: usize, message: &str| {
        findings.push(Finding::at(file.path, file.tokens[at].line, message));
    };
    for name in ["todo", "unimplemented"] {
        for at in file.sequences(&[name, "!"]) {
            report(at, "unfinished code; finish it or leave it out");
        }
    }
    for at in file.sequences(&["#", "[", "ignore"]) {
        report(at, "a test that never runs proves nothing; repair or delete it");
    }
    for at in file.sequences(&["#", "[", "cfg_attr"]) {
        let mut attribute = file.tokens[at..].iter().take_while(|token| !token.is_sign("]"));
        if attribute.any(|token| token.is_word("ignore")) {
            report(at, "a test that does not run everywhere proves nothing there");
        }
    }
    let notes = file.comments.iter().filter(|comment| comment.text.contains(NOTE));
    findings.extend(notes.map(|comment| note(file.path, comment.line)));
    findings
}

pub(crate) fn check_text(file: &TextFile<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if COMMENTED.contains(&file.extension()) || file.name() == "Makefile" {
        let noted = file.lines().filter(|(_, line)| line.contains(NOTE));
        findings.extend(noted.map(|(number, _)| note(file.path, number)));
    }
    if file.is_typescript() {
        let switched = file.lines().filter(|(_, line)| is_switched_off(line));
        findings.extend(switched.map(|(number, _)| {
            Finding::at(file.path, number, "a test is switched off, or switches the others off")
        }));
    }
    findings
}

fn note(path: &str, line: usize) -> Finding {
    Finding::at(path, line, format!("{NOTE}: fix it now, or open an issue"))
}

/// `it.skip(`, `test.only(`, `describe.todo(` at the start of a statement.
fn is_switched_off(line: &str) -> bool {
    let statement = line.trim_start();
    RUNNERS.iter().any(|runner| {
        let call = statement.strip_prefix(runner).and_then(|rest| rest.strip_prefix('.'));
        call.is_some_and(|call| {
            SWITCHES
                .iter()
                .any(|switch| call.strip_prefix(switch).is_some_and(|rest| rest.starts_with(['(', '.'])))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(source: &str) -> usize {
        check_rust(&RustFile::new("crates/store/tests/it/main.rs", source)).len()
    }

    fn typescript(text: &str) -> usize {
        check_text(&TextFile { path: "packages/client/src/a.test.ts", text }).len()
    }

    #[test]
    fn unfinished_code_and_switched_off_tests_are_refused() {
        assert_eq!(rust("fn a() { todo!() }"), 1);
        assert_eq!(rust("fn a() { unimplemented!(\"later\") }"), 1);
        assert_eq!(rust("#[test]\n#[ignore = \"slow\"]\nfn a() {}"), 1);
        assert_eq!(rust("#[cfg_attr(miri, ignore)]\nfn a() {}"), 1);
        assert_eq!(rust(&format!("// {NOTE}: later\nfn a() {{}}")), 1);
    }

    #[test]
    fn words_in_strings_and_other_attributes_pass() {
        assert_eq!(rust("fn todo() { say(\"todo!()\") } // no todo!() here"), 0);
        assert_eq!(rust("#[cfg_attr(unix, allow(x))]\nfn ignore() { ignore(); }"), 0);
    }

    #[test]
    fn typescript_and_scripts_follow_the_same_rule() {
        assert_eq!(typescript("  it.skip('x', () => {})"), 1);
        assert_eq!(typescript("describe.only.each([1])('x', f)"), 1);
        assert_eq!(typescript(&format!("// {NOTE}")), 1);
        assert_eq!(typescript("unit.skip(1)\nlist.only(2)\nit('skips', f)"), 0);
    }
}
