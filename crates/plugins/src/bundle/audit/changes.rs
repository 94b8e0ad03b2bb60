//! What differs between two versions of a plugin, line by line.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::manifest::{FetchHost, PluginDocument, PluginVersion};

/// Pairs of lines that are compared; larger pieces count as replaced whole.
const PAIRS: usize = 4_000_000;
/// Lines of one piece that a report shows.
const SHOWN: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The version that was signed last.
    pub since: PluginVersion,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<Changed>,
    pub new_hosts: Vec<FetchHost>,
    pub gone_hosts: Vec<FetchHost>,
}

/// A tool or hook that is another one now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    pub piece: String,
    /// Its description, parameters, risk or times.
    pub contract: bool,
    /// Lines behind `-` and `+`.
    pub lines: Vec<String>,
}

type Piece<'a> = (Value, &'a str);

fn pieces(document: &PluginDocument) -> BTreeMap<String, Piece<'_>> {
    let mut all = BTreeMap::new();
    for tool in &document.tools {
        let contract =
            json!([tool.description, tool.parameters, tool.risk, tool.timeout_ms, tool.idempotent]);
        all.insert(tool.name.to_string(), (contract, tool.executor_code.as_str()));
    }
    for (name, code) in &document.hooks {
        let contract = json!([document.critical, document.rewrites]);
        all.insert(format!("hook:{}", name.as_str()), (contract, code.as_str()));
    }
    all
}

pub(super) fn between(before: &PluginDocument, now: &PluginDocument) -> Changes {
    let (old, new) = (pieces(before), pieces(now));
    let missing = |from: &BTreeMap<String, Piece<'_>>, of: &BTreeMap<String, Piece<'_>>| {
        from.keys().filter(|name| !of.contains_key(*name)).cloned().collect()
    };
    let changed = new.iter().filter_map(|(name, (contract, code))| {
        let (old_contract, old_code) = old.get(name)?;
        let differs = contract != old_contract;
        (differs || code != old_code).then(|| Changed {
            piece: name.clone(),
            contract: differs,
            lines: lines(old_code, code),
        })
    });
    let hosts = |of: &PluginDocument, than: &PluginDocument| {
        of.permissions.fetch.iter().filter(|h| !than.permissions.fetch.contains(h)).cloned().collect()
    };
    Changes {
        since: before.version.clone(),
        added: missing(&new, &old),
        removed: missing(&old, &new),
        changed: changed.collect(),
        new_hosts: hosts(now, before),
        gone_hosts: hosts(before, now),
    }
}

/// The lines that differ, by the longest common subsequence.
fn lines(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail =
        |from: usize| old[from..].iter().rev().zip(new[from..].iter().rev()).take_while(|(a, b)| a == b);
    let tail = tail(head).count();
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut shown = if old.len().saturating_mul(new.len()) > PAIRS {
        let gone = old.iter().map(|line| format!("- {line}"));
        gone.chain(new.iter().map(|line| format!("+ {line}"))).collect()
    } else {
        compared(old, new)
    };
    if shown.len() > SHOWN {
        let left = shown.len() - SHOWN;
        shown.truncate(SHOWN);
        shown.push(format!("… and {left} more lines"));
    }
    shown
}

fn compared(old: &[&str], new: &[&str]) -> Vec<String> {
    // common[i][j]: length of the longest common part of old[i..] and new[j..].
    let width = new.len() + 1;
    let mut common = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut shown) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            shown.push(format!("- {}", old[i]));
            i += 1;
        } else {
            shown.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    shown
}
