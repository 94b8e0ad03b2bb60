//! The input of a call while the model still writes it (row G33).

use std::collections::HashMap;

use serde_json::Value;
use toolyard_protocol::CallId;
use toolyard_protocol::delta::Piece;

/// Longest input text that is shown as `partialInput`. Reading it again with
/// each piece costs its length squared, so a longer one has only its deltas.
pub const PARTIAL_INPUT_BYTES: usize = 8 << 10;

/// One reader's memory of the calls that are being written.
#[derive(Debug, Clone, Default)]
pub struct InputsSoFar(HashMap<CallId, String>);

impl InputsSoFar {
    /// Takes a piece in. Answers the whole text of its call, if the piece is
    /// tool input and the text is short enough to be shown again.
    pub fn add(&mut self, piece: &Piece) -> Option<&str> {
        let Piece::ToolInputDelta { call, text, .. } = piece else { return None };
        let written = self.0.entry(call.clone()).or_default();
        // One byte past the limit is enough to know that it was passed.
        if written.len() <= PARTIAL_INPUT_BYTES {
            written.push_str(text);
        }
        (written.len() <= PARTIAL_INPUT_BYTES).then_some(written.as_str())
    }
    /// The step is over, or starts again.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Reads as much of a JSON text as is there: open texts, lists and objects are
/// closed, a half-written key, number or word is left out.
pub(super) fn partial_input(text: &str) -> Option<Value> {
    if text.len() > PARTIAL_INPUT_BYTES {
        return None;
    }
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let cut = Cut::of(text)?;
    let mut closed = String::with_capacity(text.len() + cut.closers.len() + 2);
    closed.push_str(text.get(..cut.end)?);
    if cut.open_text {
        closed.push('"');
    }
    closed.extend(cut.closers.iter().rev());
    serde_json::from_str(&closed).ok()
}

/// Where a text can be closed.
#[derive(Debug, Clone, Default)]
struct Cut {
    end: usize,
    /// What is open at `end`, outermost first.
    closers: Vec<char>,
    /// `end` is inside a text that is a value.
    open_text: bool,
}

impl Cut {
    fn of(text: &str) -> Option<Self> {
        let mut reader = Reader::default();
        for (at, c) in text.char_indices() {
            reader.take(at, c)?;
        }
        reader.end()
    }
}

/// Walks over a JSON text and remembers the last place where it can be closed.
#[derive(Debug, Default)]
struct Reader {
    open: Vec<char>,
    best: Option<Cut>,
    in_text: Option<Text>,
    /// In an object, before the colon: texts are keys.
    at_key: bool,
    /// A number or word has begun; it counts once something ends it.
    in_word: bool,
}

#[derive(Debug, Clone, Copy)]
struct Text {
    is_key: bool,
    escape: Escape,
    /// The last place that is not in the middle of an escape.
    whole: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Escape {
    No,
    Begun,
    /// Hexadecimal digits that are still missing.
    Digits(u8),
}

impl Reader {
    fn close_at(&mut self, end: usize, open_text: bool) {
        self.best = Some(Cut { end, closers: self.open.clone(), open_text });
    }

    fn take(&mut self, at: usize, c: char) -> Option<()> {
        if let Some(text) = self.in_text {
            self.in_text = self.take_text(text, at, c);
            return Some(());
        }
        if self.in_word && (c.is_whitespace() || matches!(c, ',' | ']' | '}')) {
            self.in_word = false;
            self.close_at(at, false);
        }
        match c {
            '"' => {
                let text = Text { is_key: self.at_key, escape: Escape::No, whole: at + 1 };
                self.in_text = Some(text);
            }
            '{' | '[' => {
                self.open.push(if c == '{' { '}' } else { ']' });
                self.at_key = c == '{';
                self.close_at(at + 1, false);
            }
            '}' | ']' => {
                if self.open.pop()? != c {
                    return None;
                }
                self.at_key = false;
                self.close_at(at + 1, false);
            }
            ',' => self.at_key = self.open.last() == Some(&'}'),
            ':' => self.at_key = false,
            c if c.is_whitespace() => {}
            _ => self.in_word = true,
        }
        Some(())
    }

    fn take_text(&mut self, mut text: Text, at: usize, c: char) -> Option<Text> {
        let after = at + c.len_utf8();
        text.escape = match (text.escape, c) {
            (Escape::No, '"') => {
                if !text.is_key {
                    self.close_at(after, false);
                }
                return None;
            }
            (Escape::No, '\\') => Escape::Begun,
            (Escape::Begun, 'u') => Escape::Digits(4),
            (Escape::Digits(n), _) if n > 1 => Escape::Digits(n - 1),
            (Escape::No | Escape::Begun | Escape::Digits(_), _) => Escape::No,
        };
        if text.escape == Escape::No {
            text.whole = after;
        }
        Some(text)
    }

    fn end(mut self) -> Option<Cut> {
        if let Some(text) = self.in_text
            && !text.is_key
        {
            self.close_at(text.whole, true);
        }
        self.best
    }
}
