//! Finds the id of a JSON-RPC message that is too large to keep, or too odd to
//! parse, so that the call it answers ends at once and not at its time-out.

/// Bytes of a key or an id that are looked at.
const TOKEN: usize = 64;

/// Reads a message piece by piece and remembers its top-level `id` alone.
#[derive(Debug, Default)]
pub(crate) struct IdScan {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// Behind the colon of a top-level member.
    at_value: bool,
    token: Vec<u8>,
    key: Vec<u8>,
    id: Option<String>,
}

impl IdScan {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    pub(crate) fn id(self) -> Option<String> {
        self.id
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
                if self.depth == 1 && !self.at_value {
                    self.key = std::mem::take(&mut self.token);
                }
            } else {
                self.keep(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.token.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b':' if self.depth == 1 => {
                self.at_value = true;
                self.token.clear();
            }
            b',' if self.depth == 1 => self.end_member(),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < TOKEN {
            self.token.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.at_value && self.key == b"id" && !self.token.is_empty() && self.token != b"null" {
            self.id = String::from_utf8(std::mem::take(&mut self.token)).ok();
        }
        self.at_value = false;
        self.token.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Option<String> {
        // Every cut must give the same answer.
        let whole = {
            let mut scan = IdScan::default();
            scan.push(text.as_bytes());
            scan.id()
        };
        let mut bytes = IdScan::default();
        for byte in text.as_bytes() {
            bytes.push(&[*byte]);
        }
        assert_eq!(bytes.id(), whole);
        whole
    }

    #[test]
    fn the_id_of_the_message_is_found_and_no_other() {
        assert_eq!(scan(r#"{"jsonrpc":"2.0","id":7,"result":{"id":9}}"#).as_deref(), Some("7"));
        assert_eq!(scan(r#"{"result":{"a":[{"id":9}],"b":"\"id\":3"},"id": 12 }"#).as_deref(), Some("12"));
        assert_eq!(scan(r#"{"id":"a-1","result":"id"}"#).as_deref(), Some("a-1"));
        assert_eq!(scan(r#"{"id":null,"error":{}}"#), None);
        assert_eq!(scan(r#"{"method":"id","params":{"id":1}}"#), None);
        assert_eq!(scan(r#"[{"id":1}]"#), None);
        assert_eq!(scan("noise: not json"), None);
    }
}
