//! Rule: what is built comes from the registry, under a licence of `deny.toml`,
//! and is none of its banned crates (row X19). It reads the same file as
//! cargo-deny, which takes minutes to build. Known weaknesses of a crate are
//! cargo-deny's alone: they need a database from the network.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::finding::Finding;
use super::licence::allowed;
use crate::graph::Crate;

const FILE: &str = "deny.toml";
/// The names of cargo's own registry.
const REGISTRIES: [&str; 2] = [
    concat!("registry+https://github.com/rust-lang/crates.io", "-index"),
    concat!("sparse+https://index.crates", ".io/"),
];

/// What the file may say. A rule that nobody here follows would be no rule.
const KNOWN: [&str; 12] = [
    "graph.all-features",
    "graph.targets",
    "licenses.allow",
    "licenses.confidence-threshold",
    "licenses.unused-allowed-license",
    "bans.multiple-versions",
    "bans.wildcards",
    "bans.allow-wildcard-paths",
    "bans.deny",
    "sources.unknown-registry",
    "sources.unknown-git",
    "advisories.yanked",
];

/// The rules of `deny.toml`.
#[derive(Debug)]
pub(crate) struct Rules(Table);

impl Rules {
    pub(crate) fn read(text: &str) -> Result<Self, Vec<Finding>> {
        let table: Table = text.parse().map_err(|e| vec![Finding::whole(FILE, format!("{e}"))])?;
        let named = table.iter().flat_map(|(section, value)| {
            let inner = value.as_table().map(|t| t.keys().cloned().collect()).unwrap_or_default();
            let inner: Vec<String> = inner;
            inner.into_iter().map(move |key| format!("{section}.{key}"))
        });
        let unknown: Vec<_> = named.filter(|name| !KNOWN.contains(&name.as_str())).collect();
        if unknown.is_empty() {
            return Ok(Self(table));
        }
        let told = unknown.iter().map(|name| Finding::whole(FILE, format!("tidy cannot follow `{name}`")));
        Err(told.collect())
    }

    fn get(&self, section: &str, key: &str) -> Option<&Value> {
        self.0.get(section)?.get(key)
    }
    fn texts(&self, section: &str, key: &str) -> Vec<String> {
        let list = self.get(section, key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
    fn denies(&self, section: &str, key: &str) -> bool {
        self.get(section, key).and_then(Value::as_str) == Some("deny")
    }
    /// The platforms to look at.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.texts("graph", "targets")
    }
    fn ban(&self, name: &str) -> Option<&str> {
        let bans = self.get("bans", "deny").and_then(Value::as_array)?;
        let ban = bans.iter().find(|ban| ban.get("crate").and_then(Value::as_str) == Some(name))?;
        Some(ban.get("reason").and_then(Value::as_str).unwrap_or("banned"))
    }
}

pub(crate) fn check(rules: &Rules, crates: &[Crate]) -> Vec<Finding> {
    let allow = rules.texts("licenses", "allow");
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    for one in crates {
        let mut wrong = |text: String| {
            found.push(Finding::whole("Cargo.lock", format!("{} {}: {text}", one.name, one.version)));
        };
        versions.entry(&one.name).or_default().push(&one.version);
        match one.licence.as_deref().map(|licence| (licence, allowed(licence, &allow))) {
            Some((_, Some(true))) => {}
            Some((licence, Some(false))) => wrong(format!("its licence {licence} is not in {FILE}")),
            Some((licence, None)) => wrong(format!("its licence {licence} cannot be read")),
            None => wrong("it names no licence".to_owned()),
        }
        if let Some(why) = rules.ban(&one.name) {
            wrong(format!("it is banned by {FILE}: {why}"));
        }
        for dependency in one.wildcards.iter().filter(|_| rules.denies("bans", "wildcards")) {
            wrong(format!("it takes any version of {dependency}"));
        }
        let source = one.source.as_deref().filter(|source| !REGISTRIES.contains(source));
        let key = |source: &str| if source.starts_with("git+") { "unknown-git" } else { "unknown-registry" };
        if let Some(source) = source.filter(|source| rules.denies("sources", key(source))) {
            wrong(format!("it comes from {source}"));
        }
    }
    if rules.denies("bans", "multiple-versions") {
        let twice = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
        found.extend(twice.map(|(name, versions)| {
            Finding::whole("Cargo.lock", format!("{name} is built in versions {}", versions.join(", ")))
        }));
    }
    found
}

#[cfg(test)]
#[path = "supply_tests.rs"]
mod tests;
