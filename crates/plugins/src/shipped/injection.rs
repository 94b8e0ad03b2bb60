//! Prompt injection: results of tools that talk to the model as if they were
//! its user. A suspicious result is marked as untrusted, so calls with a high
//! risk ask from then on; nothing is removed, because a guess must not lose data.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Hook, Nature, Points, Ran, Stage, Step};

pub(super) const ID: &str = "injection-guard";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// From this score on a result is suspicious.
    pub threshold: u32,
    pub event_name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: 3, event_name: "injection".to_owned() }
    }
}

/// How suspicious a text is, and by which signs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    pub score: u32,
    pub signs: Vec<&'static str>,
}

/// A sign, its weight and how it looks. Weight 3 is enough alone.
const SIGNS: [(&str, u32, &str); 14] = [
    (
        "forget what you were told",
        3,
        r"(?i)\b(?:ignor\w*|disregard\w*|forget|override|bypass|drop|skip)\b[^.\n]{0,40}\b(?:previous|prior|earlier|above|preceding|all|any|your|system|original|existing|other)\b[^.\n]{0,40}\b(?:instruction|instructions|prompt|prompts|rules?|guidelines?|directions?|orders?|context|polic(?:y|ies)|constraints?|training)\b",
    ),
    (
        "a new role",
        3,
        r"(?i)\b(?:you are now|from now on,? you|you will now act|act as (?:an? )?(?:unrestricted|jailbroken|different|new|evil|root|admin)|pretend (?:to be|you are)|switch to (?:developer|admin|god|debug) mode|enter (?:developer|admin|god|debug) mode)\b",
    ),
    (
        "a false voice",
        3,
        r"(?im)(?:^|[\s>\]])(?:<\|?(?:system|im_start|assistant)\|?>|\[/?(?:INST|SYSTEM)\]|#{2,}\s*(?:system|instructions?|new instructions?)\b|(?:system|assistant|developer)\s*(?:prompt|message|note|override)?\s*:\s*(?:you|ignore|the|please|do|new|from|call|send))",
    ),
    (
        "new orders",
        2,
        r"(?i)\b(?:new|updated|real|actual|true|important|urgent|additional|hidden|secret|special)\s+(?:system\s+)?(?:instructions?|orders?|task|directive|objective)\b",
    ),
    (
        "speaks to the model",
        2,
        r"(?i)\b(?:dear |attention |note to |message (?:to|for) |hey |hello )?(?:ai|llm|language model|assistant|chatbot|agent|gpt|claude|gemini|copilot)\b[,:!]?\s+(?:you\s+)?(?:must|should|please|has to|have to|need to|needs to|shall|will|are required)\b",
    ),
    (
        "do not tell",
        3,
        r"(?i)\b(?:do not|don't|never|without)\b[^.\n]{0,30}\b(?:tell|inform|mention|reveal|notify|alert|show|telling|informing|mentioning|notifying|asking)\b[^.\n]{0,30}\b(?:user|human|anyone|anybody|him|her|them|owner|customer|operator)\b",
    ),
    (
        "send it out",
        3,
        r"(?i)\b(?:send|forward|post|upload|exfiltrate|leak|transmit|e-?mail|submit|copy|append|include|attach|encode)\b[^.\n]{0,60}\b(?:api[ _-]?keys?|passwords?|secrets?|tokens?|credentials?|conversation|chat history|private data|system prompt|environment variables|env vars|cookies?|ssh keys?|\.env)\b",
    ),
    (
        "show the prompt",
        3,
        r"(?i)\b(?:reveal|print|repeat|output|show|display|leak|disclose|tell me|recite)\b[^.\n]{0,30}\b(?:your|the|all|any|its)\b[^.\n]{0,20}\b(?:system prompt|initial prompt|hidden prompt|instructions|system message|prompt above)\b",
    ),
    (
        "call a tool",
        2,
        r"(?i)\b(?:call|invoke|use|run|execute|trigger)\b[^.\n]{0,20}\b(?:the\s+)?[`'\x22]?[a-z_]+[`'\x22]?\s+(?:tool|function|command|action|plugin)\b",
    ),
    (
        "a dangerous deed",
        2,
        r"(?i)\b(?:rm -rf|drop table|delete (?:all|every|the) (?:files?|records?|data|users?|emails?|messages?|accounts?|database)|transfer (?:all|the|\$|€|\d)[^.\n]{0,30}(?:money|funds|balance|account|usd|eur|wallet|btc|eth)|curl\s+https?://|wget\s+https?://|grant (?:admin|root|full) )",
    ),
    (
        "immediately",
        1,
        r"(?i)\b(?:immediately|right away|at once|before (?:anything|doing anything|you (?:answer|continue|reply|respond|do))|instead of (?:answering|summari[sz]ing|replying)|as your (?:first|next|only) (?:action|step|task)|stop what you)\b",
    ),
    (
        "pretends authority",
        1,
        r"(?i)\b(?:(?:this is|i am|as) (?:the|your|an?) (?:administrator|admin|developer|owner|system|operator|creator|security team)|authori[sz]ed by|security (?:test|audit|update)|by order of|on behalf of the (?:user|admin))\b",
    ),
    ("an image that carries data", 3, r"!\[[^\]]*\]\(https?://[^)\s]*[?&][^)\s]*=\s*(?:\{|\$|%7B|<|\[)"),
    ("hidden signs", 2, r"[\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{e0000}-\x{e007f}]{3,}"),
];

static LOOK: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(SIGNS.iter().map(|(_, _, look)| *look)).ok());
static SPACES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[ \t\r\x{00a0}]+").ok());

/// Looks at a text.
pub fn inspect(text: &str) -> Finding {
    let Some(look) = LOOK.as_ref() else { return Finding::default() };
    let text = SPACES.as_ref().map_or(text.into(), |spaces| spaces.replace_all(text, " "));
    let mut finding = Finding::default();
    for (sign, weight, _) in look.matches(&text).into_iter().filter_map(|i| SIGNS.get(i)) {
        finding.score += weight;
        finding.signs.push(sign);
    }
    finding
}

#[derive(Debug, Default)]
pub struct InjectionGuard(Options);

impl InjectionGuard {
    pub fn new(options: Options) -> Self {
        Self(options)
    }
}

impl Hook for InjectionGuard {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        let points = Points::of(&[HookName::OnAfterToolCall]);
        Nature { points, ..Nature::default() }
    }

    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        let mut text = String::new();
        words(&ran.result, &mut text);
        text.push_str(ran.error.as_deref().unwrap_or_default());
        let finding = inspect(&text);
        if finding.score >= self.0.threshold {
            ran.untrusted = true;
            let (call, tool) = (ran.id.to_string(), &ran.name);
            stage.log(&format!("a result of {tool} may be an injection: {}", finding.signs.join(", ")));
            stage.emit(
                &self.0.event_name,
                json!({ "toolCallId": call, "toolName": tool, "signs": finding.signs }),
            );
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Every string of a value, field names too: a model reads them all.
fn words(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, into)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            into.push_str(name);
            into.push_str(": ");
            words(field, into);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
