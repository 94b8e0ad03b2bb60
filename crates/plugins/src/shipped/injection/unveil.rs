//! What a model would read that a pattern would not: text in another alphabet
//! of the same letters, spread over lines, or written in an encoding.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex};

/// More of a text is not decoded: a result may be megabytes.
const MOST: usize = 64 << 10;

static BASE64: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/]{24,}={0,2}").ok());
static HEX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b(?:[0-9a-fA-F]{2}){16,}\b").ok());
static CODES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"&#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}));|\\u([0-9a-fA-F]{4})|%([0-9a-fA-F]{2})").ok()
});

/// The text in plain letters, and what is written inside it in other ways.
pub(super) fn readings(text: &str) -> Vec<String> {
    let plain = plain(text);
    let head = head(&plain);
    let mut readings = Vec::new();
    for found in [BASE64.as_ref(), HEX.as_ref()].into_iter().flatten().flat_map(|look| look.find_iter(head)) {
        readings.extend(decoded(found.as_str()));
    }
    if let Some(read) = CODES.as_ref().map(|codes| codes.replace_all(head, code))
        && let Cow::Owned(read) = read
    {
        readings.push(read);
    }
    readings.extend(joined(head));
    let small = head.to_lowercase();
    if small.contains("rot13") {
        readings.push(head.chars().map(rot13).collect());
    }
    if small.contains("backward") || small.contains("reverse") {
        readings.push(head.chars().rev().collect());
    }
    if head.contains('_') {
        readings.push(head.replace('_', " "));
    }
    readings.insert(0, plain);
    readings
}

fn head(text: &str) -> &str {
    let mut most = text.len().min(MOST);
    while !text.is_char_boundary(most) {
        most -= 1;
    }
    &text[..most]
}

/// One form for letters that look alike, and none for signs that nobody sees.
fn plain(text: &str) -> String {
    let mixed = text.split_whitespace().any(is_mixed);
    text.chars()
        .filter_map(|c| match c {
            '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}' => None,
            // Letters in disguise: tags, and those of double width.
            '\u{e0020}'..='\u{e007e}' => char::from_u32(u32::from(c) - 0xe0000),
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
            _ if mixed => Some(latin(c)),
            _ => Some(c),
        })
        .collect()
}

/// Latin and Cyrillic letters in one word.
fn is_mixed(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_alphabetic()) && word.chars().any(|c| latin(c) != c)
}

const fn latin(c: char) -> char {
    match c {
        'а' => 'a',
        'е' => 'e',
        'о' => 'o',
        'р' => 'p',
        'с' => 'c',
        'х' => 'x',
        'у' => 'y',
        'і' => 'i',
        'А' => 'A',
        'Е' => 'E',
        'О' => 'O',
        'Р' => 'P',
        'С' => 'C',
        'І' => 'I',
        other => other,
    }
}

fn decoded(text: &str) -> Option<String> {
    let hex = text.len().is_multiple_of(2) && text.bytes().all(|b| b.is_ascii_hexdigit());
    let bytes = if hex {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok())
            .collect::<Option<_>>()
    } else {
        STANDARD.decode(text).ok()
    }?;
    let text = String::from_utf8(bytes).ok()?;
    // A hash or a picture is no text.
    (!text.chars().any(|c| c.is_control() && !c.is_whitespace())).then_some(text)
}

fn code(found: &Captures<'_>) -> String {
    let number = |i: usize, radix| found.get(i).and_then(|m| u32::from_str_radix(m.as_str(), radix).ok());
    let number = number(1, 16).or_else(|| number(2, 10)).or_else(|| number(3, 16)).or_else(|| number(4, 16));
    number.and_then(char::from_u32).map_or_else(|| found[0].to_owned(), String::from)
}

/// Words that stand on lines of their own, letters that stand apart, and
/// letters that are written as numbers.
fn joined(text: &str) -> Vec<String> {
    let mut made = Vec::new();
    let words: Vec<&str> = text.split_whitespace().collect();
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    if words.len() < 5 {
        return made;
    }
    if lines > 4 && words.len() < 2 * lines {
        made.push(words.join(" "));
    }
    let share = |count: usize| 10 * count / words.len();
    if share(words.iter().filter(|word| word.chars().count() == 1).count()) >= 7 {
        let apart = text.split("  ").map(|word| word.replace(' ', ""));
        let mut joined = String::new();
        apart.filter(|word| !word.is_empty()).for_each(|word| {
            let _ = write!(joined, "{word} ");
        });
        made.push(joined);
    }
    let numbered = |word: &&&str| {
        word.chars().any(|c| c.is_ascii_digit()) && word.chars().any(|c| c.is_ascii_alphabetic())
    };
    if share(words.iter().filter(numbered).count()) >= 3 {
        made.push(text.chars().map(letter).collect());
    }
    made
}

const fn letter(c: char) -> char {
    match c {
        '4' | '@' => 'a',
        '3' => 'e',
        '1' | '!' => 'i',
        '0' => 'o',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

fn rot13(c: char) -> char {
    let turn = |base: u8| char::from((c as u8 - base + 13) % 26 + base);
    match c {
        'a'..='z' => turn(b'a'),
        'A'..='Z' => turn(b'A'),
        other => other,
    }
}
