//! Plugins that depend on plugins (row H67): `name@range`, checked at
//! registration, ordered, cycles refused.

use std::sync::Arc;

use semver::{Version, VersionReq};

use super::{Plugin, PluginError};

/// One entry of `requires`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) name: String,
    /// As it was written, and read. Missing means any version.
    range: Option<(String, Vec<VersionReq>)>,
}

impl Requirement {
    pub(super) fn parse(plugin: &str, text: &str) -> Result<Self, PluginError> {
        let unreadable =
            || PluginError::RequiresUnreadable { plugin: plugin.to_owned(), text: text.to_owned() };
        // A scope such as `@acme/x` begins with the same sign.
        let (name, range) = match text.char_indices().rfind(|(at, sign)| *at > 0 && *sign == '@') {
            Some((at, _)) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        if name.trim().is_empty() || name == "@" {
            return Err(unreadable());
        }
        let range = match range.map(str::trim) {
            None => None,
            Some(range) => {
                let any: Option<Vec<VersionReq>> = range.split("||").map(read_range).collect();
                Some((range.to_owned(), any.ok_or_else(unreadable)?))
            }
        };
        Ok(Self { name: name.trim().to_owned(), range })
    }

    /// Refuses a version outside the range.
    pub(super) fn check(&self, plugin: &str, found: &str) -> Result<(), PluginError> {
        let Some((range, any)) = &self.range else { return Ok(()) };
        let fits = Version::parse(found).is_ok_and(|version| any.iter().any(|one| one.matches(&version)));
        if fits {
            return Ok(());
        }
        Err(PluginError::RequiresVersion {
            plugin: plugin.to_owned(),
            needs: self.name.clone(),
            range: range.clone(),
            found: found.to_owned(),
        })
    }
}

/// Ranges of npm separate by spaces what ranges of Rust separate by commas; a
/// bare version means exactly that one there.
fn read_range(text: &str) -> Option<VersionReq> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    // `>= 1.2` is one comparator.
    let mut parts: Vec<String> = Vec::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        match parts.last_mut() {
            Some(last) if last.ends_with(['<', '>', '=', '^', '~']) => last.push_str(word),
            _ => parts.push(word.to_owned()),
        }
    }
    let exact = |part: String| match Version::parse(&part) {
        Ok(_) => format!("={part}"),
        Err(_) => part,
    };
    VersionReq::parse(&parts.into_iter().map(exact).collect::<Vec<_>>().join(", ")).ok()
}

/// The plugins in an order in which each follows what it requires of them.
/// Their own order decides where requirements do not.
pub(super) fn ordered(plugins: Vec<Arc<dyn Plugin>>) -> Result<Vec<Arc<dyn Plugin>>, PluginError> {
    let mut left = plugins;
    let mut done: Vec<Arc<dyn Plugin>> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut next = None;
        for (at, plugin) in left.iter().enumerate() {
            let mut needs = Vec::new();
            for text in plugin.requires() {
                needs.push(Requirement::parse(plugin.name(), &text)?.name);
            }
            if !left.iter().any(|other| needs.iter().any(|name| name == other.name())) {
                next = Some(at);
                break;
            }
        }
        let Some(at) = next else {
            let mut plugins: Vec<String> = left.iter().map(|plugin| plugin.name().to_owned()).collect();
            plugins.sort();
            return Err(PluginError::Cycle { plugins });
        };
        done.push(left.remove(at));
    }
    Ok(done)
}
