//! JSON Pointers: the place of an error, and the target of a local reference.

use serde_json::Value;

use crate::text::shorten;

/// Longest place an error prints. Property names are foreign text and may be long.
const MAX_PLACE: usize = 200;

/// One step from a schema towards a subschema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Segment<'a> {
    Name(&'a str),
    Index(usize),
}

/// The path as text for an error message: escaped as a pointer, cleaned and cut for reading.
pub(crate) fn place(path: &[Segment<'_>]) -> String {
    let mut text = String::new();
    for segment in path {
        text.push('/');
        match segment {
            Segment::Name(name) => text.push_str(&name.replace('~', "~0").replace('/', "~1")),
            Segment::Index(index) => text.push_str(&index.to_string()),
        }
        if text.len() > MAX_PLACE {
            break;
        }
    }
    if text.is_empty() {
        text.push('/');
    }
    shorten(&text, MAX_PLACE)
}

/// The value a reference's fragment points at, or nothing. `fragment` is what follows the `#`.
pub(crate) fn resolve<'a>(root: &'a Value, fragment: &str) -> Option<&'a Value> {
    let pointer = percent_decode(fragment)?;
    root.pointer(&pointer)
}

/// Fragments are URI text: `%5B` is `[`. Anything that does not decode to UTF-8 names nothing.
fn percent_decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
