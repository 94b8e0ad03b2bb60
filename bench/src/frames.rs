//! Server-sent events as the servers of this rig write them: `\n` ends a line
//! and a blank line ends an event. Not a general reader.

/// Collects bytes and gives whole events.
#[derive(Debug, Default)]
pub struct Frames {
    held: Vec<u8>,
    /// Bytes of `held` that belong to events already given.
    given: usize,
}

/// One event, borrowed from the bytes that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    pub name: &'a str,
    pub data: &'a str,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.given);
        self.given = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next whole event. Comments and events without data come as empty ones.
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        let rest = self.held.get(self.given..)?;
        let end = blank_line(rest)?;
        let frame = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        self.given += end + 2;
        let mut event = Event { name: "", data: "" };
        for line in frame.split('\n') {
            if let Some(data) = line.strip_prefix("data:") {
                event.data = data.trim_start();
            } else if let Some(name) = line.strip_prefix("event:") {
                event.name = name.trim();
            }
        }
        Some(event)
    }
}

fn blank_line(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|b| *b == b'\n')?;
        if bytes.get(at + 1) == Some(&b'\n') {
            return Some(at);
        }
        from = at + 1;
    }
}
