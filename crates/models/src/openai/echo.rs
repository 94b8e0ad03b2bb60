//! Most events of a reply differ from the one before in nothing but their text.
//! Such an event need not be parsed: what stands around the text is the same
//! bytes, so it says the same again.

use std::borrow::Cow;

use super::wire::{Choice, Delta, Piece};
use crate::lenient::filled;

/// What stood around the text of the last event that said nothing else.
#[derive(Debug, Default)]
pub(super) struct Echo {
    /// Before the text, with the quote that opens it.
    before: String,
    /// After the text, with the quote that closes it. Empty: nothing is known.
    after: String,
}

impl Echo {
    /// The text of an event that is the known one with another text.
    pub(super) fn text<'d>(&self, data: &'d str) -> Option<&'d str> {
        if self.after.is_empty() {
            return None;
        }
        let text = data.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        // An escape or a quote is the parser's to read, and so is what JSON forbids.
        let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        (!text.is_empty() && text.bytes().all(plain)).then_some(text)
    }

    /// Looks at an event that was parsed. One that says more than its text
    /// teaches nothing, and what was known stays.
    pub(super) fn learn(&mut self, data: &str, piece: &Piece<'_>) {
        let Some(Cow::Borrowed(text)) = only_text(piece) else { return };
        // A borrowed text lies in the data itself.
        let start = (text.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
        let parts = (data.get(..start), data.get(start.saturating_add(text.len())..));
        if let (Some(before), Some(after)) = parts
            && after.starts_with('"')
        {
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
        }
    }
}

/// The text of an event, if it tells nothing else that is not told by every
/// event of its reply. Every field is named, so a new one is thought of here.
fn only_text<'p, 'a>(piece: &'p Piece<'a>) -> Option<&'p Cow<'a, str>> {
    let Piece { id: _, model: _, choices, usage: None, x_groq: None, error: None, rest: None, marker: _ } =
        piece
    else {
        return None;
    };
    let [
        Choice {
            index,
            delta: Some(delta),
            message: None,
            finish_reason,
            error: None,
            rest: None,
            marker: _,
        },
    ] = choices.as_deref()?
    else {
        return None;
    };
    let Delta {
        content: Some(content),
        refusal,
        reasoning_content,
        reasoning,
        tool_calls: None,
        function_call: None,
        reasoning_details: None,
        annotations: None,
        rest: None,
        marker: _,
    } = delta
    else {
        return None;
    };
    let silent =
        [refusal, reasoning_content, reasoning, finish_reason].iter().all(|text| filled(text).is_none());
    (silent && index.unwrap_or(0) == 0 && content.filled().is_some()).then_some(&content.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str =
        r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"One"},"finish_reason":null}]}"#;

    fn learned(data: &str) -> Echo {
        let mut echo = Echo::default();
        let piece = serde_json::from_str::<Piece<'_>>(data).unwrap_or_default();
        echo.learn(data, &piece);
        echo
    }

    #[test]
    fn the_same_event_with_another_text_is_known() {
        let echo = learned(FIRST);
        let with = |text: &str| FIRST.replace("One", text);
        assert_eq!(echo.text(&with(" two, dr\u{e4}i")), Some(" two, dr\u{e4}i"));
        for odd in ["", "a\\nb", "\",\"refusal\":\"x", "\u{1}"] {
            assert_eq!(echo.text(&with(odd)), None, "{odd:?} is the parser's");
        }
        assert_eq!(echo.text(&FIRST.replace("c1", "c2")), None);
        assert_eq!(echo.text(&FIRST.replace("null", "\"stop\"")), None);
    }

    #[test]
    fn what_says_more_than_its_text_teaches_nothing() {
        for more in [
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"new":1}"#,
            r#"{"choices":[{"delta":{"content":"a\nb"}}]}"#,
            r#"{"choices":[{"delta":{"content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":["a"]}}]}"#,
            r#"{"choices":[]}"#,
        ] {
            assert!(learned(more).after.is_empty(), "{more}");
        }
    }

    /// The text may stand elsewhere too: only its own place counts.
    #[test]
    fn a_text_that_is_also_a_name_is_found_where_it_was_said() {
        let echo = learned(r#"{"model":"mock","choices":[{"delta":{"content":"mock"}}]}"#);
        assert_eq!(echo.text(r#"{"model":"mock","choices":[{"delta":{"content":"x"}}]}"#), Some("x"));
        assert_eq!(echo.text(r#"{"model":"x","choices":[{"delta":{"content":"mock"}}]}"#), None);
    }
}
