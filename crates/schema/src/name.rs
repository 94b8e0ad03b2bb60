//! Tool names. Two rules, because two documents disagree and both are tested.

/// Longest name under either rule.
pub(crate) const MAX_NAME: usize = 64;

/// Names that are keys of every JavaScript object. A tool table in a client would answer for
/// them without any tool being registered.
const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Which names a surface accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameRule {
    /// Chat requests and client plugins: `^[A-Za-z][A-Za-z0-9_]{0,63}$`.
    Chat,
    /// A2A requests, agent configs, MCP: `^[A-Za-z0-9_-]{1,64}$`.
    Config,
}

impl NameRule {
    #[must_use]
    pub fn accepts(self, name: &str) -> bool {
        let bytes = name.as_bytes();
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let shape = match self {
            Self::Chat => bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.iter().all(word),
            Self::Config => !bytes.is_empty() && bytes.iter().all(|byte| word(byte) || *byte == b'-'),
        };
        shape && bytes.len() <= MAX_NAME && !RESERVED.contains(&name)
    }

    /// The rule in words, for error messages.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Chat => "1-64 letters, digits and underscores, beginning with a letter",
            Self::Config => "1-64 letters, digits, hyphens and underscores",
        }
    }
}
