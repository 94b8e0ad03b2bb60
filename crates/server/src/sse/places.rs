//! How far the reader of several spaces is, as one opaque position.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use toolyard_protocol::{ErrorCode, SpaceId, limits};

use super::cursor;
use crate::http::Refusal;
use crate::routes::call::Call;

/// The last position of each space that was told. One that is missing is read
/// from its beginning.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Places(BTreeMap<SpaceId, i64>);

impl Places {
    /// Where `Last-Event-ID` or `?since` says that the caller is.
    pub(crate) fn wanted(call: &Call) -> Result<Self, Refusal> {
        let Some(text) = cursor::given(call, &["since"]) else { return Ok(Self::default()) };
        Self::parse(text).ok_or_else(|| {
            Refusal::new(ErrorCode::InvalidCursor, "The position must be an id that this stream gave")
        })
    }

    pub(super) fn of(&self, space: &SpaceId) -> i64 {
        self.0.get(space).copied().unwrap_or(0)
    }

    /// Forgets the spaces that are not among these.
    pub(super) fn keep(&mut self, spaces: &[SpaceId]) {
        self.0.retain(|space, _| spaces.contains(space));
    }

    /// Writes a frame of a space, with the place of all instead of its own. What
    /// is no frame is left out: this stream has a sign of life of its own.
    pub(super) fn tell(&mut self, space: &SpaceId, block: &[u8], text: &mut Vec<u8>) {
        if block.starts_with(b"event: ") {
            text.extend_from_slice(block);
            return;
        }
        let Some(told) = block.strip_prefix(b"id: ") else { return };
        let end = told.iter().position(|byte| *byte == b'\n').unwrap_or(told.len());
        let (id, rest) = told.split_at(end);
        if let Some(pos) = std::str::from_utf8(id).ok().and_then(cursor::parse) {
            self.0.insert(space.clone(), pos);
        }
        text.extend_from_slice(b"id: ");
        text.extend_from_slice(self.write().as_bytes());
        text.extend_from_slice(rest);
    }

    fn write(&self) -> String {
        let places: Vec<_> = self.0.iter().map(|(space, pos)| format!("{space}~{pos}")).collect();
        URL_SAFE_NO_PAD.encode(places.join(","))
    }

    fn parse(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let place = |text: &str| {
            let (space, pos) = text.split_once('~')?;
            Some((SpaceId::parse(space).ok()?, cursor::parse(pos)?))
        };
        let places: BTreeMap<_, _> = text.split(',').map(place).collect::<Option<_>>()?;
        (places.len() <= limits::ENTITY_SPACES).then_some(Self(places))
    }
}

/// Cuts what a reader sends into its frames: each ends with a blank line, and
/// none has one inside.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<u8>);

impl Blocks {
    pub(super) fn push(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) {
        // The blank line may begin with the last byte that was there before.
        let mut from = self.0.len().saturating_sub(1);
        self.0.extend_from_slice(piece);
        let mut start = 0;
        while let Some(at) =
            self.0.get(from..).and_then(|rest| rest.windows(2).position(|two| two == b"\n\n"))
        {
            let end = from + at + 2;
            each(self.0.get(start..end).unwrap_or_default());
            (start, from) = (end, end);
        }
        self.0.drain(..start);
        if self.0.is_empty() {
            // A large frame is not held for small ones.
            self.0.shrink_to(4 << 10);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn space(name: &str) -> SpaceId {
        SpaceId::parse(name).unwrap()
    }

    #[test]
    fn s1_a_position_says_how_far_every_space_is() {
        let (a, b) = (space("space_a"), space("space_b"));
        let mut places = Places::default();
        let mut text = Vec::new();
        places.tell(&a, b"id: 7\nevent: x\ndata: {}\n\n", &mut text);
        places.tell(&b, b": keep-alive\n\n", &mut text);
        places.tell(&b, b"event: text-delta\ndata: {}\n\n", &mut text);
        places.tell(&b, b"id: 2\nevent: y\ndata: {}\n\n", &mut text);
        let text = String::from_utf8(text).unwrap();
        let ids: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        assert_eq!(ids.len(), 2, "{text}");
        assert_eq!(Places::parse(ids[0]).unwrap().0, BTreeMap::from([(a.clone(), 7)]));
        assert_eq!(Places::parse(ids[1]).unwrap(), places);
        assert_eq!((places.of(&a), places.of(&b), places.of(&space("c"))), (7, 2, 0));
        places.keep(&[b]);
        assert_eq!(places.of(&a), 0);
        for garbage in ["", "7", "!", "c3BhY2U", "YX43LA"] {
            assert_eq!(Places::parse(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let whole = b"id: 1\nevent: x\ndata: {}\n\n: hello\n\nevent: y\ndata: {}\n\n";
        for at in 0..whole.len() {
            let (mut blocks, mut found) = (Blocks::default(), Vec::new());
            for piece in [&whole[..at], &whole[at..]] {
                blocks.push(piece, |block| found.push(block.to_vec()));
            }
            assert_eq!(found.len(), 3, "cut at {at}");
            assert_eq!(found.concat(), whole);
        }
    }
}
