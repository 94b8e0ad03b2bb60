//! Finds the mock's stamps in any protocol: `~`, digits, and no digit after.
//!
//! Stamps of a run only grow, so a text that is told again (a whole message
//! after its pieces, a replay) counts once, and a lost piece shows in the count.

/// The shortest number that is a stamp and not a stray digit after a tilde.
const DIGITS: u32 = 6;

/// The stamps seen so far in one run.
#[derive(Debug, Default)]
pub struct Stamps {
    last: u64,
    count: u32,
    /// A number that the last bytes left open.
    open: Option<(u64, u32)>,
}

impl Stamps {
    /// Reads bytes; `seen` gets each stamp that is new.
    pub fn push(&mut self, bytes: &[u8], mut seen: impl FnMut(u64)) {
        for byte in bytes {
            match (self.open, byte) {
                (_, b'~') => self.open = Some((0, 0)),
                (Some((value, digits)), b'0'..=b'9') => {
                    let value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                    self.open = Some((value, digits + 1));
                }
                (Some((value, digits)), _) => {
                    self.open = None;
                    if digits >= DIGITS && value > self.last {
                        self.last = value;
                        self.count += 1;
                        seen(value);
                    }
                }
                (None, _) => {}
            }
        }
    }

    pub fn count(&self) -> u32 {
        self.count
    }
}
