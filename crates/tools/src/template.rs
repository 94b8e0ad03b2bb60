//! Text of a configuration with marks in it: `{{name}}` stands for a value of
//! the input, `${secret.NAME}` and `${env.NAME}` for a secret.
//!
//! A text is read once, before any value is known. So no value can bring marks
//! of its own: what the model says is never looked at for secrets.

use serde_json::Value;
use toolyard_protocol::SecretName;

/// One piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// `{{name}}`
    Input(String),
    /// `${secret.NAME}` or `${env.NAME}`
    Reference(Reference),
}

/// Where a secret is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    Secret(SecretName),
    Env(SecretName),
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Secret(name) => write!(f, "${{secret.{name}}}"),
            Self::Env(name) => write!(f, "${{env.{name}}}"),
        }
    }
}

/// Reads a text. A mark that is no mark stays text, except for references
/// without a name: those are mistakes that would send the mark itself out.
pub fn parse(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let marked = if rest.starts_with("{{") {
            input(rest)
        } else if rest.starts_with("${secret.") || rest.starts_with("${env.") {
            Some(reference(rest)?)
        } else {
            None
        };
        match marked {
            Some((piece, after)) => {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(piece);
                rest = after;
            }
            None => {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

fn input(rest: &str) -> Option<(Piece, &str)> {
    let (name, after) = rest.strip_prefix("{{")?.split_once("}}")?;
    let name = name.trim();
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(fits)).then(|| (Piece::Input(name.to_owned()), after))
}

fn reference(rest: &str) -> Result<(Piece, &str), String> {
    let (inside, after) =
        rest.strip_prefix("${").and_then(|r| r.split_once('}')).ok_or("a reference has no closing }")?;
    let (kind, name) = inside.split_once('.').ok_or("a reference has no name")?;
    let name = SecretName::parse(name).map_err(|e| e.to_string())?;
    let reference = if kind == "env" { Reference::Env(name) } else { Reference::Secret(name) };
    Ok((Piece::Reference(reference), after))
}

/// The value of `{{name}}`: of the input, or of its `variables`. Dots lead
/// into objects. Null is nothing.
pub fn find<'a>(args: &'a Value, name: &str) -> Option<&'a Value> {
    [Some(args), args.get("variables")]
        .into_iter()
        .flatten()
        .find_map(|from| {
            from.get(name).or_else(|| name.split('.').try_fold(from, |value, part| value.get(part)))
        })
        .filter(|value| !value.is_null())
}

/// A value as text, if it is one that text can hold.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_read_into_its_pieces() {
        let secret = |name| Piece::Reference(Reference::Secret(SecretName::parse(name).unwrap()));
        let text = |text: &str| Piece::Text(text.to_owned());
        let input = |name: &str| Piece::Input(name.to_owned());
        let env = Piece::Reference(Reference::Env(SecretName::parse("E_1").unwrap()));
        let cases = [
            ("", vec![]),
            ("plain", vec![text("plain")]),
            ("a{{ b }}c", vec![text("a"), input("b"), text("c")]),
            ("${secret.K}${env.E_1}", vec![secret("K"), env]),
            ("{{a}}{{b.c}}", vec![input("a"), input("b.c")]),
            ("${other.K} $ {{}} {{ {", vec![text("${other.K} $ {{}} {{ {")]),
            ("{{${secret.K}}}", vec![text("{{"), secret("K"), text("}}")]),
        ];
        for (given, pieces) in cases {
            assert_eq!(parse(given).unwrap(), pieces, "{given}");
        }
        for bad in ["${secret.}", "${secret.a-b}", "${env.1}", "${secret.K", "x ${env. A}"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_is_found_in_the_input_and_its_variables() {
        let args = json!({"a": 1, "n": null, "o": {"p": "q"}, "x.y": 2, "variables": {"a": 9, "v": "w"}});
        assert_eq!(find(&args, "a"), Some(&json!(1)));
        assert_eq!(find(&args, "v"), Some(&json!("w")));
        assert_eq!(find(&args, "o.p"), Some(&json!("q")));
        assert_eq!(find(&args, "x.y"), Some(&json!(2)));
        assert_eq!((find(&args, "n"), find(&args, "z"), find(&json!([]), "a")), (None, None, None));
    }
}
