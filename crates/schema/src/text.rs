//! Text that people and models read: which characters may not hide in it.
//!
//! A description with invisible characters can tell a model what the person who approves the call
//! does not see. Requests and configs with such characters are refused ([`find_hidden`]); text of
//! MCP servers is cleaned and marked ([`clean`]).

/// A character that hides text or changes its direction, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenCharacter {
    pub character: char,
    /// Byte offset in the text.
    pub offset: usize,
}

/// The first character of `text` that must not be there, if any.
#[must_use]
pub fn find_hidden(text: &str) -> Option<HiddenCharacter> {
    text.char_indices()
        .find(|&(offset, character)| is_hidden(character) && !ends_line(text, offset, character))
        .map(|(offset, character)| HiddenCharacter { character, offset })
}

/// Text without hidden characters, cut to a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    pub text: String,
    /// Something was removed or cut: show the text as altered.
    pub altered: bool,
}

/// Removes hidden characters and cuts at `max_bytes`, never inside a character.
#[must_use]
pub fn clean(text: &str, max_bytes: usize) -> Cleaned {
    let mut kept = String::new();
    for (offset, character) in text.char_indices() {
        if is_hidden(character) && !ends_line(text, offset, character) {
            continue;
        }
        if kept.len() + character.len_utf8() > max_bytes {
            break;
        }
        kept.push(character);
    }
    Cleaned { altered: kept.len() != text.len(), text: kept }
}

/// Foreign text inside one of our sentences: hidden characters and line ends escaped, cut short.
pub(crate) fn shorten(text: &str, max_bytes: usize) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        if shown.len() >= max_bytes {
            shown.push('…');
            break;
        }
        if is_hidden(character) || matches!(character, '\n' | '\t') {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A carriage return is fine as half of a line end; alone it overwrites a line on a terminal.
fn ends_line(text: &str, offset: usize, character: char) -> bool {
    character == '\r' && text.as_bytes().get(offset + 1) == Some(&b'\n')
}

fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        _ if character.is_control() => true,
        // Invisible on their own: soft hyphen, joiners, fillers, zero-width spaces, BOM.
        '\u{00AD}'
        | '\u{034F}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200D}'
        | '\u{2060}'..='\u{2065}'
        | '\u{3164}'
        | '\u{FEFF}'
        | '\u{FFA0}' => true,
        // Direction marks, embeddings, overrides, isolates; deprecated format characters.
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{206F}' => true,
        // Line and paragraph separators break a line where no reader expects it.
        '\u{2028}' | '\u{2029}' => true,
        // Annotation marks, musical format characters, tags, and the selectors that carry bytes.
        '\u{FFF9}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}' => true,
        _ => false,
    }
}
