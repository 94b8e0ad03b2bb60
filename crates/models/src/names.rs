//! Tool names on a vendor's wire.
//!
//! Vendors take fewer names than we do. A name that does not fit gets an alias
//! made from the name alone, so that it stays the same from request to request
//! and a vendor's prompt cache keeps working. What comes back is the name.

use std::collections::{BTreeMap, BTreeSet};

use toolyard_protocol::Hash;

use crate::request::{ChatTurn, Request};

/// Characters of a name that every vendor takes.
pub const ALIAS_CHARS: usize = 64;
/// Characters of the hash that tells similar aliases apart.
const MARK_CHARS: usize = 10;

/// The names of one request, there and back. Only names that need an alias
/// are in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    aliases: BTreeMap<String, String>,
    given: BTreeMap<String, String>,
}

impl Names {
    /// All names of a request: its tools, and the calls of its history.
    pub fn of(request: &Request) -> Self {
        Self::table(names_in(request), Start::Any)
    }

    /// The same for a vendor whose names begin with a letter or `_`.
    pub fn lettered(request: &Request) -> Self {
        Self::table(names_in(request), Start::Letter)
    }

    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self::table(names, Start::Any)
    }

    fn table<'n>(names: impl IntoIterator<Item = &'n str>, start: Start) -> Self {
        // Names that fit keep themselves, whatever aliases look like.
        let (safe, other): (BTreeSet<&str>, BTreeSet<&str>) =
            names.into_iter().partition(|name| is_safe(name, start));
        let mut table = Self::default();
        for name in other {
            let alias = (0..)
                .map(|round| alias(name, round, start))
                .find(|alias| !safe.contains(alias.as_str()) && !table.given.contains_key(alias));
            if let Some(alias) = alias {
                table.aliases.insert(name.to_owned(), alias.clone());
                table.given.insert(alias, name.to_owned());
            }
        }
        table
    }

    /// What the vendor is told.
    pub fn alias<'n>(&'n self, name: &'n str) -> &'n str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    /// As [`Self::alias`], for a name that is not needed any more.
    pub(crate) fn told(&self, name: String) -> String {
        self.aliases.get(&name).cloned().unwrap_or(name)
    }

    /// What the vendor means. A name that it made up stays as it is.
    pub fn given<'n>(&'n self, alias: &'n str) -> &'n str {
        self.given.get(alias).map_or(alias, String::as_str)
    }
}

/// How a name may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Any,
    Letter,
}

impl Start {
    fn allows(self, name: &str) -> bool {
        self == Self::Any || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

fn names_in(request: &Request) -> impl Iterator<Item = &str> {
    let offered = request.tools.iter().map(|tool| tool.name.as_str());
    let called = request.turns.iter().flat_map(|turn| match turn {
        ChatTurn::Assistant { calls, .. } => calls.iter().map(|call| call.name.as_str()).collect(),
        ChatTurn::ToolResults(results) => results.iter().map(|result| result.name.as_str()).collect(),
        ChatTurn::User { .. } | ChatTurn::System(_) => Vec::new(),
    });
    offered.chain(called)
}

fn fits(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn is_safe(name: &str, start: Start) -> bool {
    !name.is_empty() && name.len() <= ALIAS_CHARS && name.chars().all(fits) && start.allows(name)
}

/// As much of the name as fits, then a mark of the whole name.
fn alias(name: &str, round: u32, start: Start) -> String {
    let hash = Hash::of(format!("{round}:{name}").as_bytes()).to_string();
    let mark = hash.get(hash.len().saturating_sub(MARK_CHARS)..).unwrap_or(&hash);
    let before = if start.allows(name) { "" } else { "_" };
    let room = ALIAS_CHARS - MARK_CHARS - 1 - before.len();
    let kept: String = name.chars().take(room).map(|c| if fits(c) { c } else { '_' }).collect();
    format!("{before}{kept}_{mark}")
}
