//! Lays out TypeScript types that ts-rs writes on one line: one field or
//! member per line, so that a change shows as itself in a diff.

use std::fmt::Write as _;

/// Which fields may be absent although their type does not say so.
pub(super) type MayBeAbsent<'a> = &'a dyn Fn(&str) -> bool;

/// A declaration `type Name = …;` with its type laid out.
pub(super) fn declaration(text: &str, absent: MayBeAbsent<'_>) -> String {
    let Some((head, ty)) = text.split_once(" = ") else { return text.to_owned() };
    let ty = ty.trim_end().trim_end_matches(';');
    let ty = whole(ty, absent);
    // A union starts on its own line.
    let gap = if ty.starts_with('\n') { "" } else { " " };
    format!("{head} ={gap}{ty};")
}

/// A type, laid out.
pub(super) fn whole(ty: &str, absent: MayBeAbsent<'_>) -> String {
    let members = split(ty, '|');
    if members.len() == 1 || !ty.contains('{') {
        return object(ty.trim(), "", absent);
    }
    let mut text = String::new();
    for member in members {
        let _ = write!(text, "\n  | {}", object(member.trim(), "  ", absent));
    }
    text
}

/// An object type over several lines; anything else as it is.
fn object(ty: &str, indent: &str, absent: MayBeAbsent<'_>) -> String {
    let inside = ty.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let Some(inside) = inside.filter(|inside| !inside.trim_start().starts_with('[')) else {
        return ty.to_owned();
    };
    if split(ty, '&').len() > 1 {
        return ty.to_owned();
    }
    let mut text = "{\n".to_owned();
    for field in split(inside, ',').iter().map(|field| field.trim()).filter(|field| !field.is_empty()) {
        let (docs, field) = match field.rsplit_once("*/") {
            Some((docs, field)) => (docs.trim(), field.trim()),
            None => ("", field),
        };
        let said =
            docs.lines().map(|line| line.trim().trim_start_matches("/**").trim_start_matches('*').trim());
        for line in said.filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "{indent}  /** {line} */");
        }
        let (name, ty) = field.split_once(':').unwrap_or((field, "unknown"));
        let name = name.trim().trim_matches('"');
        let (name, optional) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name, absent(name)),
        };
        let mark = if optional { "?" } else { "" };
        let _ = writeln!(text, "{indent}  {name}{mark}: {};", ty.trim());
    }
    text.push_str(indent);
    text.push('}');
    text
}

/// Splits outside of brackets, texts and comments.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut quoted, mut comment, mut before) = (false, false, ' ');
    for (i, c) in text.char_indices() {
        match (c, before) {
            ('*', '/') if !quoted => comment = true,
            ('/', '*') if comment => comment = false,
            _ if comment => {}
            ('"', _) => quoted = !quoted,
            _ if quoted => {}
            ('{' | '[' | '(' | '<', _) => depth += 1,
            ('}' | ']' | ')' | '>', _) => depth = depth.saturating_sub(1),
            _ if c == at && depth == 0 => {
                parts.push(text.get(start..i).unwrap_or_default());
                start = i + c.len_utf8();
            }
            _ => {}
        }
        before = c;
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}
