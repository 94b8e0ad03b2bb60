//! Cuts Rust source into tokens, so that a rule can tell code from strings and
//! comments. It knows no grammar, and it never fails: source that does not
//! compile gives odd tokens, and the compiler says the rest.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Names and keywords; a raw name is without its `r#`.
    Word,
    /// String, byte string, raw string, with its quotes.
    Text,
    /// Line, block or doc comment, with its marks.
    Comment,
    /// One sign of punctuation, except that `::` is one token.
    Sign,
    /// Numbers, characters, lifetimes: no rule looks at them.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// The line of its first byte, counted from one.
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }
}

pub(crate) fn lex(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            line += usize::from(first == '\n');
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (kind, length) = measure(rest, first);
        let (text, after) = rest.split_at(length);
        let shown = if kind == Kind::Word { text.strip_prefix("r#").unwrap_or(text) } else { text };
        tokens.push(Token { kind, text: shown, line });
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

/// The kind and the length in bytes of the token at the start of `rest`.
fn measure(rest: &str, first: char) -> (Kind, usize) {
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return (Kind::Text, length);
    }
    if let Some(after) = rest.strip_prefix("b'") {
        return (Kind::Other, 2 + character(after).unwrap_or(0));
    }
    if first == '\'' {
        let after = &rest[1..];
        // `'a'` is a character, `'a` a lifetime.
        return (Kind::Other, 1 + character(after).unwrap_or_else(|| word(after)));
    }
    if is_word_start(first) {
        let raw = if rest.starts_with("r#") { 2 } else { 0 };
        return (Kind::Word, raw + word(&rest[raw..]));
    }
    if first.is_ascii_digit() {
        return (Kind::Other, word(rest));
    }
    if rest.starts_with("::") {
        return (Kind::Sign, 2);
    }
    (Kind::Sign, first.len_utf8())
}

fn is_word_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn word(rest: &str) -> usize {
    rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
}

/// Block comments nest in Rust.
fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of a string literal of any form, if there is one here.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|after| after.starts_with(['"', '#'])))?;
    let after = &rest[prefix.len()..];
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    let body = after[hashes..].strip_prefix('"')?;
    let start = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(body.find(&end).map_or(rest.len(), |at| start + at + end.len()));
    }
    if hashes > 0 {
        return None;
    }
    Some(start + quoted(body, b'"'))
}

/// The length of a character literal after its opening quote, if it is one.
fn character(after: &str) -> Option<usize> {
    if after.starts_with('\\') {
        return Some(quoted(after, b'\''));
    }
    let first = after.chars().next()?;
    after[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 1)
}

/// The length up to and with the closing quote, over escapes.
fn quoted(body: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, kind: Kind) -> Vec<&str> {
        lex(source).into_iter().filter(|token| token.kind == kind).map(|token| token.text).collect()
    }

    #[test]
    fn words_in_strings_and_comments_are_not_code() {
        let source = "let a = \"spawn \\\" b\"; // spawn c\n/* d /* e */ f */ g";
        assert_eq!(texts(source, Kind::Word), ["let", "a", "g"]);
        assert_eq!(texts(source, Kind::Text), ["\"spawn \\\" b\""]);
        assert_eq!(texts(source, Kind::Comment), ["// spawn c", "/* d /* e */ f */"]);
    }

    #[test]
    fn raw_and_byte_strings_end_at_their_own_mark() {
        let source = "r#\"a \" b\"# br\"\\\" b\"c\\\"\" c\"d\" r#type";
        assert_eq!(texts(source, Kind::Text), ["r#\"a \" b\"#", "br\"\\\"", "b\"c\\\"\"", "c\"d\""]);
        assert_eq!(texts(source, Kind::Word), ["type"]);
    }

    #[test]
    fn lifetimes_and_characters_do_not_open_strings() {
        let source = "fn f<'a>(x: &'a str) { '\"'; '\\''; b'\"'; b'\\''; 'é' } \"end\"";
        assert_eq!(texts(source, Kind::Text), ["\"end\""]);
        assert_eq!(texts(source, Kind::Word), ["fn", "f", "x", "str"]);
    }

    #[test]
    fn lines_are_counted_through_strings_of_many_lines() {
        let source = "a\n\"b\nc\"\nd";
        let lines: Vec<usize> = lex(source).iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 4]);
    }

    #[test]
    fn unfinished_source_ends_without_a_panic() {
        for source in ["\"a", "r#\"a", "/* a", "'", "b'", "r#", "'\\", "#"] {
            let total: usize = lex(source).iter().map(|token| token.text.len()).sum();
            assert!(total <= source.len(), "{source}");
        }
    }
}
