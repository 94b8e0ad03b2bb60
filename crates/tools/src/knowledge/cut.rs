//! Cuts a text into pieces, where it breathes: between paragraphs, lines,
//! sentences, words. The same text is always cut the same way, so a node can go
//! on where another stopped.

use toolyard_protocol::limits;
use toolyard_store::knowledge::Chunk;

/// The pieces that begin at `from`, at most `most`, and where the next one begins.
pub(crate) fn pieces(text: &str, from: usize, most: usize) -> (Vec<Chunk>, usize) {
    let mut chunks = Vec::new();
    let mut at = from;
    while chunks.len() < most {
        let Some(rest) = text.get(at..) else { return (chunks, text.len()) };
        let start = at + rest.len() - rest.trim_start().len();
        if start >= text.len() {
            return (chunks, text.len());
        }
        let end = end_of(text, start);
        let piece = text[start..end].trim_end();
        chunks.push(Chunk {
            start: i64::try_from(start).unwrap_or(i64::MAX),
            end: i64::try_from(start + piece.len()).unwrap_or(i64::MAX),
            text: piece.to_owned(),
        });
        at = end;
    }
    (chunks, at)
}

/// Where a piece that starts here ends.
fn end_of(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let Some((most, _)) = rest.char_indices().nth(limits::CHUNK_CHARS) else { return text.len() };
    let window = &rest[..most];
    // A break in the first half would make pieces that say little.
    let good = |at: Option<usize>, behind: usize| at.map(|at| at + behind).filter(|end| *end > most / 2);
    let end = good(window.rfind("\n\n"), 2)
        .or_else(|| good(window.rfind('\n'), 1))
        .or_else(|| good(window.rfind(". "), 2))
        .or_else(|| good(window.rfind(' '), 1))
        .unwrap_or(most);
    start + end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Chunk> {
        pieces(text, 0, usize::MAX).0
    }

    #[test]
    fn pieces_are_the_text_and_stay_within_their_size() {
        let text = "Grüße. ".repeat(1000) + "\n\n" + &"x".repeat(5000);
        let chunks = all(&text);
        assert!(chunks.len() > 8);
        for chunk in &chunks {
            let (start, end) =
                (usize::try_from(chunk.start).unwrap_or(0), usize::try_from(chunk.end).unwrap_or(0));
            assert_eq!(&text[start..end], chunk.text);
            assert!(chunk.text.chars().count() <= limits::CHUNK_CHARS);
        }
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        assert_eq!(chunks.iter().map(|c| letters(&c.text)).sum::<usize>(), letters(&text));
    }

    #[test]
    fn a_text_is_cut_the_same_in_one_go_and_in_slices() {
        let text = "One line of words.\nAnother one, longer than the first. ".repeat(400);
        let (mut sliced, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let (chunks, next) = pieces(&text, at, 3);
            sliced.extend(chunks);
            at = next;
        }
        assert_eq!(sliced, all(&text));
    }

    #[test]
    fn an_empty_text_has_no_pieces() {
        assert_eq!(pieces(" \n ", 0, 5), (Vec::new(), 3));
    }
}
