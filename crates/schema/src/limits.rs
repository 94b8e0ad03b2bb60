//! The numbers. Every limit of this crate is here, and every error that applies one prints it.
//!
//! Two kinds: constants that hold for every schema, and [`Limits`], which differ by who supplied
//! the tool. A caller may tighten [`Limits`]; it cannot lift the constants.

/// Bytes of a schema as compact JSON.
pub const MAX_BYTES: usize = 64 * 1024;

/// Levels of JSON nesting in a schema, data such as `const` and `default` included.
pub const MAX_NESTING: usize = 64;

/// The longest path through a schema, each reference counted as a step. A schema of depth 16
/// whose every level is a reference is just inside. No [`Limits`] allow more depth than this.
pub const ABSOLUTE_DEPTH: usize = 32;

/// Subschemas of a schema, counted as paths: a definition that is reached on three ways counts
/// three times. This is what stops a 2 KB schema from costing 2^28 checks.
pub const MAX_NODES: u64 = 5_000;

/// Values in one `enum`.
pub const MAX_ENUM: usize = 1_000;

/// Bytes of one `pattern` or of one `patternProperties` name.
pub const MAX_PATTERN_BYTES: usize = 512;

/// Different patterns in one schema. With [`MAX_PATTERN_SIZE`] it bounds a schema's memory.
pub const MAX_PATTERNS: usize = 32;

/// Bytes of one compiled pattern.
pub const MAX_PATTERN_SIZE: usize = 512 * 1024;

/// Levels of nesting in tool arguments.
pub const MAX_ARGUMENT_DEPTH: usize = 64;

/// Sentences in one refusal of arguments.
pub const MAX_ARGUMENT_ERRORS: usize = 20;

/// Steps one check may cost, see the meter. A step is some tens of nanoseconds of optimised code.
pub const MAX_CHECK_STEPS: u64 = 2_000_000;

/// Nested subschema visits one check may need. Recursive schemas multiply the depth of the
/// arguments by their own, and the validator's stack grows with the product.
pub(crate) const MAX_CHAIN: usize = 400;

/// Who supplied a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A request: a browser, an A2A client. No references, `properties` must be written out,
    /// a description of 1–1024 characters is required.
    Request,
    /// The operator: agent configs, plugins, configured MCP servers. Local references are
    /// allowed, `properties` and the description may be missing.
    Trusted,
}

/// The limits that depend on who supplied a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits {
    pub source: Source,
    /// Tools in one list.
    pub max_tools: usize,
    /// Schema depth: the root is 1, each subschema below adds 1, a reference adds nothing.
    pub max_depth: usize,
    /// Names in one `properties` object.
    pub max_properties: usize,
}

impl Limits {
    /// For tools that arrive in a request with a public key.
    /// With a secret key use `Limits::request().with_max_tools(…)`.
    #[must_use]
    pub const fn request() -> Self {
        Self {
            source: Source::Request,
            max_tools: toolyard_protocol::limits::PUBLIC_TOOLS,
            max_depth: 5,
            max_properties: 20,
        }
    }

    /// For tools the operator configured, directly or through an MCP server.
    #[must_use]
    pub const fn trusted() -> Self {
        Self { source: Source::Trusted, max_tools: 128, max_depth: 16, max_properties: 256 }
    }

    /// The same limits with another number of tools: that one depends on the caller's key.
    #[must_use]
    pub const fn with_max_tools(mut self, max_tools: usize) -> Self {
        self.max_tools = max_tools;
        self
    }

    pub(crate) const fn is_request(&self) -> bool {
        matches!(self.source, Source::Request)
    }
}
