//! A file as the rules see it: its path, its text, and for Rust its tokens and
//! which of its lines are tests.

use std::ops::RangeInclusive;

use super::lexer::{Kind, Token, lex};

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct TextFile<'a> {
    /// Relative to the root, with `/` between the parts.
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
}

impl TextFile<'_> {
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    pub(crate) fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    pub(crate) fn is_typescript(&self) -> bool {
        matches!(self.extension(), "ts" | "tsx" | "mts" | "cts")
    }

    /// Lines with their numbers, counted from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// A Rust file, cut into tokens.
#[derive(Debug)]
pub(crate) struct RustFile<'a> {
    pub(crate) path: &'a str,
    /// Code and strings in order, without the comments.
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) comments: Vec<Token<'a>>,
    test_lines: Vec<RangeInclusive<usize>>,
    all_tests: bool,
}

impl<'a> RustFile<'a> {
    pub(crate) fn new(path: &'a str, text: &'a str) -> Self {
        let (comments, tokens): (Vec<_>, Vec<_>) =
            lex(text).into_iter().partition(|token| token.kind == Kind::Comment);
        let test_lines = test_items(&tokens);
        Self { path, tokens, comments, test_lines, all_tests: is_test_path(path) }
    }

    /// The folder name of the crate this file belongs to, if it is under `crates/`.
    pub(crate) fn crate_folder(&self) -> Option<&'a str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the line is part of a test: such code never reaches a user.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.all_tests || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// The indices at which the given words and signs stand one after another.
    pub(crate) fn sequences(&self, wanted: &[&str]) -> Vec<usize> {
        self.tokens
            .windows(wanted.len())
            .enumerate()
            .filter(|(_, window)| {
                window
                    .iter()
                    .zip(wanted)
                    .all(|(token, text)| matches!(token.kind, Kind::Word | Kind::Sign) && token.text == *text)
            })
            .map(|(index, _)| index)
            .collect()
    }
}

/// Folders and file names that hold nothing but tests.
fn is_test_path(path: &str) -> bool {
    let mut parts = path.split('/').collect::<Vec<_>>();
    let name = parts.pop().unwrap_or_default();
    parts.iter().any(|part| matches!(*part, "tests" | "benches" | "bench" | "fuzz"))
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
}

/// The line ranges of items behind an attribute that only tests compile.
fn test_items(tokens: &[Token<'_>]) -> Vec<RangeInclusive<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(attribute_end) = attribute(tokens, at) else {
            at += 1;
            continue;
        };
        if is_test_attribute(&tokens[at..attribute_end]) {
            let end = item_end(tokens, attribute_end);
            let last = tokens.get(end).or(tokens.last()).map_or(tokens[at].line, |token| token.line);
            found.push(tokens[at].line..=last);
            at = end;
        } else {
            at = attribute_end;
        }
    }
    found
}

/// The index after the attribute `#[…]` or `#![…]` that starts here, if one does.
fn attribute(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    tokens.get(at).filter(|token| token.is_sign("#"))?;
    let inner = tokens.get(at + 1).is_some_and(|token| token.is_sign("!"));
    let open = at + 1 + usize::from(inner);
    tokens.get(open).filter(|token| token.is_sign("["))?;
    Some(closing(tokens, open, "[", "]") + 1)
}

/// `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, but not `#[cfg(not(test))]`.
fn is_test_attribute(attribute: &[Token<'_>]) -> bool {
    let has = |word| attribute.iter().any(|token| token.is_word(word));
    let path = attribute.iter().take_while(|token| !token.is_sign("("));
    let last = path.filter(|token| token.kind == Kind::Word).last();
    has("test") && !has("not") && last.is_some_and(|word| matches!(word.text, "cfg" | "test"))
}

/// The index of the token that ends the item: its `;`, or its closing brace.
fn item_end(tokens: &[Token<'_>], from: usize) -> usize {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        if let Some(after) = attribute(tokens, at) {
            at = after;
        } else if token.is_sign("{") {
            return closing(tokens, at, "{", "}");
        } else if token.is_sign(";") {
            return at;
        } else {
            at += 1;
        }
    }
    tokens.len()
}

/// The index of the sign that closes the one at `open`.
fn closing(tokens: &[Token<'_>], open: usize, opens: &str, closes: &str) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.is_sign(opens) {
            depth += 1;
        } else if token.is_sign(closes) {
            depth -= 1;
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_test_items_are_tests_and_the_others_are_not() {
        let source = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n\
                      #[tokio::test(flavor = \"multi_thread\")]\nasync fn d() {\n}\n#[cfg(not(test))]\nfn e() {}\n\
                      #[cfg(test)]\nmod f;\nfn g() {}";
        let file = RustFile::new("crates/engine/src/lib.rs", source);
        let tests: Vec<usize> = (1..=15).filter(|line| file.is_test(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 6, 8, 9, 10, 13, 14]);
    }

    #[test]
    fn test_folders_and_test_files_are_tests_throughout() {
        for path in
            ["crates/store/tests/it/main.rs", "tests/e2e/src/main.rs", "crates/store/src/append/tests.rs"]
        {
            assert!(RustFile::new(path, "fn a() {}").is_test(1), "{path}");
        }
        assert!(!RustFile::new("crates/store/src/contests.rs", "fn a() {}").is_test(1));
    }

    #[test]
    fn sequences_match_code_and_not_strings() {
        let file = RustFile::new("a.rs", "tokio::spawn(x); \"tokio::spawn\"; tokio::spawn(y);");
        assert_eq!(file.sequences(&["tokio", "::", "spawn"]).len(), 2);
    }

    #[test]
    fn the_crate_of_a_file_is_its_folder_under_crates() {
        assert_eq!(RustFile::new("crates/store/src/lib.rs", "").crate_folder(), Some("store"));
        assert_eq!(RustFile::new("xtask/src/main.rs", "").crate_folder(), None);
    }

    #[test]
    fn names_and_extensions_come_from_the_last_part() {
        let file = TextFile { path: "apps/chat.v/App.test.tsx", text: "" };
        assert_eq!((file.name(), file.extension(), file.is_typescript()), ("App.test.tsx", "tsx", true));
        let file = TextFile { path: ".ci/run", text: "" };
        assert_eq!((file.name(), file.extension()), ("run", ""));
    }
}
