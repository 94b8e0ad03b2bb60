//! Rule: names say what a thing is. `Manager`, `Helper`, `Util` and `Impl` say
//! nothing, `do_` and `_inner` hide that a function lacks a name of its own, and
//! `v2` means that the first one should have gone.
//!
//! Only declarations are judged: the names of other people's types are theirs.
//! The name of a test is a sentence and may use any word.

use super::finding::Finding;
use super::lexer::Kind;
use super::source::{RustFile, TextFile};

const EMPTY_WORDS: [&str; 6] = ["manager", "managers", "helper", "helpers", "util", "utils"];

/// Keywords that are followed by the name they declare.
const RUST_DECLARATIONS: [&str; 9] =
    ["struct", "enum", "trait", "type", "mod", "fn", "const", "static", "let"];
const TYPESCRIPT_DECLARATIONS: [&str; 8] =
    ["class", "interface", "type", "enum", "function", "const", "let", "namespace"];
const TYPESCRIPT_MODIFIERS: [&str; 5] = ["export", "default", "declare", "abstract", "async"];

pub(crate) fn check_rust(file: &RustFile<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, keyword) in file.tokens.iter().enumerate() {
        let declares = keyword.kind == Kind::Word && RUST_DECLARATIONS.contains(&keyword.text);
        let is_pointer = at > 0 && file.tokens[at - 1].is_sign("*");
        let is_sentence = keyword.text == "fn" && file.is_test(keyword.line);
        if !declares || is_pointer || is_sentence {
            continue;
        }
        let mut rest = file.tokens[at + 1..].iter().skip_while(|token| token.is_word("mut"));
        let Some(name) = rest.next().filter(|token| token.kind == Kind::Word) else {
            continue;
        };
        if let Some(why) = judge(name.text, keyword.text == "fn") {
            findings.push(Finding::at(file.path, name.line, format!("`{}`: {why}", name.text)));
        }
    }
    findings
}

pub(crate) fn check_typescript(file: &TextFile<'_>) -> Vec<Finding> {
    if !file.is_typescript() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let mut words = line
            .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
            .filter(|word| !word.is_empty())
            .skip_while(|word| TYPESCRIPT_MODIFIERS.contains(word));
        // Comments and strings start with a sign, so that a line that starts with
        // a keyword is code.
        if !line.trim_start().starts_with(|c: char| c.is_alphabetic()) {
            continue;
        }
        let (Some(keyword), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        if !TYPESCRIPT_DECLARATIONS.contains(&keyword) {
            continue;
        }
        if let Some(why) = judge(name, keyword == "function") {
            findings.push(Finding::at(file.path, number, format!("`{name}`: {why}")));
        }
    }
    findings
}

/// Why the name is refused, if it is.
fn judge(name: &str, is_function: bool) -> Option<&'static str> {
    let words = words(name);
    let several = words.len() > 1;
    let last = words.last().map(String::as_str);
    let is_empty = |word: &String| EMPTY_WORDS.contains(&word.as_str());
    if words.iter().any(is_empty) || (several && last == Some("impl")) {
        return Some("Manager, Helper, Util and Impl name nothing; use a word of the vocabulary");
    }
    if is_function && several && words[0] == "do" {
        return Some("a function is named by its own verb, not by `do_`");
    }
    // `into_inner` is the standard library's word for taking a wrapper off.
    if several && last == Some("inner") && name != "into_inner" {
        return Some("name the part by what it does, not by `_inner`");
    }
    if several && last == Some("v2") {
        return Some("no second version of a name: change the first one");
    }
    None
}

/// The words of a name in snake, camel or capital form, in lower case.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let after_small = at > 0 && (letters[at - 1].is_lowercase() || letters[at - 1].is_numeric());
        let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let after_capital = at > 0 && letters[at - 1].is_uppercase();
        let starts = letter.is_uppercase() && (after_small || (after_capital && before_small));
        if *letter == '_' || *letter == '$' || starts {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(source: &str) -> Vec<String> {
        let file = RustFile::new("crates/store/src/a.rs", source);
        check_rust(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_banned_name_is_refused_where_it_is_declared() {
        for source in [
            "pub struct RunManager;",
            "trait StoreHelper {}",
            "mod utils;",
            "enum HTTPUtil {}",
            "struct ModelImpl<T>(T);",
            "const MANAGER_COUNT: u8 = 1;",
            "fn do_append() {}",
            "async fn append_inner(&self) {}",
            "struct SharedInner;",
            "let mut config_v2 = 1;",
            "type EventV2 = u8;",
        ] {
            assert_eq!(rust(source).len(), 1, "{source}");
        }
    }

    #[test]
    fn foreign_names_plain_words_strings_and_test_sentences_pass() {
        for source in [
            "use redis::aio::ConnectionManager;",
            "let client = ConnectionManager::new();",
            "fn into_inner(self) {}",
            "struct Inner;",
            "fn double(x: *const UtilX) {}",
            "let s = \"struct RunManager;\"; // struct RunManager;",
            "fn document() {}",
            "fn parse_impl_block() {}",
            "let utility_token_ipv2x = 1;",
            "#[test]\nfn a_helper_that_says_do_is_fine_inner() {}",
        ] {
            assert_eq!(rust(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn typescript_declarations_follow_the_same_rule() {
        let text = "export class ToolManager {}\n  const runInner = 1\nexport async function doSend() {}\n\
                    // class CommentManager\nimport { QueueManager } from 'x'\nconst q = new QueueManager()\n";
        let findings = check_typescript(&TextFile { path: "packages/client/src/a.ts", text });
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].contains("a.ts:1: `ToolManager`"));
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("HTTPUtil"), ["http", "util"]);
        assert_eq!(words("MAX_UTIL_v2"), ["max", "util", "v2"]);
        assert_eq!(words("EventV2"), ["event", "v2"]);
        assert_eq!(words("_x"), ["x"]);
    }
}
