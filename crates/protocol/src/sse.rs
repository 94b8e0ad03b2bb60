//! Splits a byte stream into server-sent events, at any cut.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    pub id: Option<String>,
    pub event: Option<String>,
    pub data: String,
}

/// An event or line larger than allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct TooLarge {
    pub limit: usize,
}

/// Takes bytes in, gives events out. Knows CRLF, CR and LF, comments, several
/// data lines, and a byte order mark at the start.
#[derive(Debug)]
pub struct SseSplitter {
    line: Vec<u8>,
    event: SseEvent,
    /// Room for the name of the next event.
    name: String,
    has_data: bool,
    /// The last byte was CR: a following LF belongs to it.
    after_cr: bool,
    first_line: bool,
    limit: usize,
}

impl SseSplitter {
    /// Refuses events larger than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: SseEvent::default(),
            name: String::new(),
            has_data: false,
            after_cr: false,
            first_line: true,
            limit,
        }
    }

    /// Feeds bytes and appends the events that are complete.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), TooLarge> {
        self.each(bytes, |event| out.push(std::mem::take(event)))
    }

    /// Feeds bytes and shows each event that is complete. Its room is used
    /// again for the next one.
    pub fn each(&mut self, bytes: &[u8], mut show: impl FnMut(&mut SseEvent)) -> Result<(), TooLarge> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                return self.check_size(self.line.len());
            };
            self.after_cr = rest[end] == b'\r';
            if self.line.is_empty() {
                // The whole line is here: it is read where it lies.
                self.check_size(end)?;
                self.end_line(&rest[..end], &mut show);
            } else {
                self.line.extend_from_slice(&rest[..end]);
                self.check_size(self.line.len())?;
                let mut line = std::mem::take(&mut self.line);
                self.end_line(&line, &mut show);
                line.clear();
                self.line = line;
            }
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    fn check_size(&self, line: usize) -> Result<(), TooLarge> {
        if line + self.event.data.len() > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        Ok(())
    }

    fn end_line(&mut self, bytes: &[u8], show: &mut impl FnMut(&mut SseEvent)) {
        let mended;
        let mut line = match std::str::from_utf8(bytes) {
            Ok(line) => line,
            Err(_) => {
                mended = String::from_utf8_lossy(bytes);
                &mended
            }
        };
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                show(&mut self.event);
            }
            self.begin();
            return;
        }
        let (field, value) = match line.split_once(':') {
            Some(("", _)) => return,
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line, ""),
        };
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "event" => {
                let mut name = self.event.event.take().unwrap_or_else(|| std::mem::take(&mut self.name));
                name.clear();
                name.push_str(value);
                self.event.event = Some(name);
            }
            "id" => self.event.id = Some(value.to_owned()),
            _ => {}
        }
    }

    /// Makes room for the next event; what the last one had is used again.
    fn begin(&mut self) {
        self.event.id = None;
        self.event.data.clear();
        if let Some(name) = self.event.event.take() {
            self.name = name;
        }
    }
}
