//! The path of a parameter as people write it.

use crate::pointer::Segment;
use crate::text::shorten;

/// Longest parameter name a sentence prints, and the longest whole path.
const MAX_NAME: usize = 64;
const MAX_PATH: usize = 256;

/// The path of a member that need not exist.
pub(super) fn render_with(path: &[Segment<'_>], name: &str) -> String {
    let mut path = path.to_vec();
    path.push(Segment::Name(name));
    render(&path)
}

/// `a.b[2]`. Names are foreign text: cleaned and cut.
pub(super) fn render(path: &[Segment<'_>]) -> String {
    let mut text = String::new();
    for segment in path {
        if text.len() > MAX_PATH {
            text.push('…');
            break;
        }
        match segment {
            Segment::Index(index) => {
                text.push('[');
                text.push_str(&index.to_string());
                text.push(']');
            }
            Segment::Name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                if name.is_empty() {
                    text.push_str("\"\"");
                } else {
                    text.push_str(&shorten(name, MAX_NAME));
                }
            }
        }
    }
    text
}
