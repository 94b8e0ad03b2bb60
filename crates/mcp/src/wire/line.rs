//! Lines of a program's output, each within a limit. A longer one is not kept,
//! only its id.

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::scan::IdScan;

/// Bytes read at once.
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// Larger than allowed; the id if it had one.
    TooLong(Option<String>),
}

/// Safe to drop between any two awaits: all it has read stays inside.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: R,
    ahead: BytesMut,
    line: Vec<u8>,
    skipping: Option<IdScan>,
    most: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R, most: usize) -> Self {
        Self { from, ahead: BytesMut::new(), line: Vec::new(), skipping: None, most }
    }

    /// The next line, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(end) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let piece = self.ahead.split_to(end + 1);
                return Some(self.finish(&piece[..end]));
            }
            let piece = self.ahead.split();
            self.keep(&piece);
            self.ahead.reserve(PIECE);
            match self.from.read_buf(&mut self.ahead).await {
                Ok(n) if n > 0 => {}
                Ok(_) | Err(_) => {
                    let last = !self.line.is_empty() || self.skipping.is_some();
                    return last.then(|| self.finish(&[]));
                }
            }
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if let Some(scan) = &mut self.skipping {
            scan.push(piece);
        } else if self.line.len() + piece.len() > self.most {
            let mut scan = IdScan::default();
            scan.push(&std::mem::take(&mut self.line));
            scan.push(piece);
            self.skipping = Some(scan);
        } else {
            self.line.extend_from_slice(piece);
        }
    }

    fn finish(&mut self, piece: &[u8]) -> Line {
        self.keep(piece);
        match self.skipping.take() {
            Some(scan) => Line::TooLong(scan.id()),
            None => Line::Whole(std::mem::take(&mut self.line)),
        }
    }
}

/// The id of a line that does not parse.
pub(crate) fn id_of(bytes: &[u8]) -> Option<String> {
    let mut scan = IdScan::default();
    scan.push(bytes);
    scan.id()
}
