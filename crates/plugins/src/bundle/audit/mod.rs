//! The automatic part of a review: what the code is, what it asks for, what
//! stands out, and what is new since the version that was signed last.
//!
//! The report helps a person decide; the sandbox protects whatever they
//! decide. So a rule here may be got around by clever code: its purpose is
//! that such code has to look clever.

mod changes;
mod tree;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_protocol::manifest::{FetchHost, PluginDocument};

use super::candidate::{Candidate, is_unseen};
pub use changes::{Changed, Changes};

/// What a curator reads before signing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Bytes of all code.
    pub code_bytes: usize,
    /// Nodes of all syntax trees.
    pub nodes: usize,
    pub pieces: Vec<Piece>,
    pub fetch: Vec<FetchHost>,
    pub findings: Vec<Finding>,
    /// Missing means that nothing was signed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// The code of one tool or hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Piece {
    /// The tool's name, or `hook:` and the hook's.
    pub name: String,
    pub bytes: usize,
    pub nodes: usize,
    /// It is JavaScript.
    pub parses: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub level: Level,
    pub rule: String,
    /// The tool, or the hook.
    pub piece: String,
    pub line: usize,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Somebody should look.
    Notice,
    /// Nobody signs it.
    Forbidden,
}

impl Report {
    pub fn forbidden(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Forbidden)
    }
    /// Pieces that are no JavaScript. They do not run; the others do (row H51).
    pub fn broken(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter(|piece| !piece.parses).map(|piece| piece.name.as_str())
    }
}

/// Looks at a candidate, and at what was signed before.
pub fn audit(candidate: &Candidate, before: Option<&Candidate>) -> Report {
    let document = candidate.document();
    let fetches = !document.permissions.fetch.is_empty();
    let mut report = Report {
        code_bytes: 0,
        nodes: 0,
        pieces: Vec::new(),
        fetch: document.permissions.fetch.clone(),
        findings: Vec::new(),
        changes: before.map(|before| changes::between(before.document(), document)),
    };
    for (name, code) in pieces(document) {
        let seen = tree::look(&code, fetches);
        report.code_bytes += code.len();
        report.nodes += seen.nodes;
        let hidden = code.lines().enumerate().filter(|(_, line)| line.chars().any(is_unseen));
        let hidden = hidden.map(|(i, _)| tree::Sight {
            level: Level::Forbidden,
            rule: "hidden-characters",
            line: i + 1,
            text: "characters that nobody sees, or that turn the direction of text".to_owned(),
        });
        let parses = seen.parses;
        report.findings.extend(seen.sights.into_iter().chain(hidden).map(|sight| Finding {
            level: sight.level,
            rule: sight.rule.to_owned(),
            piece: name.clone(),
            line: sight.line,
            text: sight.text,
        }));
        report.pieces.push(Piece { name, bytes: code.len(), nodes: seen.nodes, parses });
    }
    report.findings.extend(widened(report.changes.as_ref()));
    report
}

/// New permissions in a new version deserve a look of their own.
fn widened(changes: Option<&Changes>) -> Option<Finding> {
    let new = changes.filter(|changes| !changes.new_hosts.is_empty())?;
    let hosts: Vec<&str> = new.new_hosts.iter().map(FetchHost::as_str).collect();
    Some(Finding {
        level: Level::Notice,
        rule: "new-permissions".to_owned(),
        piece: String::new(),
        line: 0,
        text: format!("asks for {} since version {}", hosts.join(", "), new.since),
    })
}

fn pieces(document: &PluginDocument) -> Vec<(String, String)> {
    let tools = document.tools.iter().map(|tool| (tool.name.to_string(), tool.executor_code.clone()));
    let hooks = document.hooks.iter().map(|(name, code)| (format!("hook:{}", name.as_str()), code.clone()));
    tools.chain(hooks).collect()
}
