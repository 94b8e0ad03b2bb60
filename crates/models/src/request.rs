//! What a model is asked, in no vendor's words.

use serde_json::{Map, Value};
use toolyard_protocol::TraceParent;
use toolyard_protocol::agent::{Reasoning, ToolChoice};
use toolyard_protocol::ids::CallId;
use toolyard_protocol::message::Part;

use crate::provider_id::normalise;
use crate::wire::{LeftOut, What};

/// One call of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The model's name at its vendor.
    pub model: String,
    pub system: Option<String>,
    pub turns: Vec<ChatTurn>,
    /// Empty means that tools are off.
    pub tools: Vec<OfferedTool>,
    pub tool_choice: ToolChoice,
    pub temperature: Option<f64>,
    pub max_output_tokens: Option<u32>,
    pub reasoning: Option<Reasoning>,
    /// Passed to the vendor as it is, by vendor name.
    pub provider_options: Option<Map<String, Value>>,
    /// Tools that the vendor runs itself: a list by vendor name, passed on as
    /// it is.
    pub provider_tools: Map<String, Value>,
    /// The form that the reply must have.
    pub output: Option<OutputSchema>,
    /// The vendor holds this model to a form, as the operator says. Missing
    /// means what is known of the model's name.
    pub structured_output: Option<bool>,
    /// The span that the vendor is told of, where runs are traced.
    pub trace: Option<TraceParent>,
}

/// A reply as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema {
    pub name: String,
    pub schema: Value,
    /// The vendor must refuse what the schema does not allow.
    pub strict: bool,
}

impl Request {
    /// Takes the tools that this vendor runs itself, by whatever name the
    /// vendor is called.
    pub(crate) fn take_hosted(&mut self, vendor: &str) -> Vec<Value> {
        let own = std::mem::take(&mut self.provider_tools);
        let lists = own.into_iter().filter(|(name, _)| is_of(name, vendor));
        lists
            .filter_map(|(_, list)| if let Value::Array(tools) = list { Some(tools) } else { None })
            .flatten()
            .collect()
    }

    /// Takes the options for this vendor. What stands under its plain name
    /// goes before what stands under another.
    pub(crate) fn take_options(&mut self, vendor: &str) -> Map<String, Value> {
        let mut all = self.provider_options.take().unwrap_or_default();
        let plain = all.remove(vendor);
        let others = all.into_iter().filter(|(name, _)| is_of(name, vendor)).map(|(_, options)| options);
        let mut merged = Map::new();
        for options in others.chain(plain) {
            if let Value::Object(options) = options {
                merged.extend(options);
            }
        }
        merged
    }

    /// One option for this vendor.
    pub(crate) fn option(&self, vendor: &str, name: &str) -> Option<&Value> {
        let all = self.provider_options.as_ref()?;
        let own = all.iter().filter(|(key, _)| is_of(key, vendor));
        own.filter_map(|(_, options)| options.get(name)).next_back()
    }

    /// Whether the vendor holds this model to a form: the operator's word
    /// counts more than what the name tells.
    pub(crate) fn holds_to_form(&self, by_name: impl FnOnce(&str) -> bool) -> Result<(), &'static str> {
        match self.structured_output {
            Some(true) => Ok(()),
            Some(false) => Err("the configuration says that this model has no structured output"),
            None if by_name(&self.model) => Ok(()),
            None => Err("the vendor does not hold this model to a schema"),
        }
    }

    /// Asks in words for the form of the answer, since the vendor cannot be
    /// held to it.
    pub(crate) fn ask_in_words(&mut self, output: OutputSchema, why: &impl ToString) -> LeftOut {
        let OutputSchema { name, schema, strict: _ } = output;
        let words = format!(
            "Answer with one JSON value and nothing else: no heading, no code fence. \
             The value must match this JSON Schema:\n{schema}"
        );
        self.system = Some(match self.system.take().filter(|system| !system.trim().is_empty()) {
            Some(system) => format!("{system}\n\n{words}"),
            None => words,
        });
        LeftOut { what: What::Output, name, reason: why.to_string() }
    }

    /// The model may call tools in this reply.
    pub fn tools_on(&self) -> bool {
        !self.tools.is_empty() && self.tool_choice != ToolChoice::None
    }
}

/// `openai.responses` and `azure-openai` mean the vendor `openai`.
fn is_of(name: &str, vendor: &str) -> bool {
    let name = normalise(name);
    name == vendor || (vendor == "openai" && name == "azure-openai")
}

/// One turn of the conversation. Parts that a model cannot read (`Data`,
/// `Source`, tool parts) are skipped: calls and results have fields of their
/// own here.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatTurn {
    User {
        parts: Vec<Part>,
        name: Option<String>,
    },
    Assistant {
        parts: Vec<Part>,
        calls: Vec<PastCall>,
    },
    /// The outcomes of the calls of the assistant turn before.
    ToolResults(Vec<PastResult>),
    /// A word of the gateway in the middle of the conversation.
    System(String),
}

impl ChatTurn {
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { parts: vec![Part::text(text)], name: None }
    }
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { parts: vec![Part::text(text)], calls: Vec::new() }
    }
}

/// A call that the model made earlier.
#[derive(Debug, Clone, PartialEq)]
pub struct PastCall {
    pub id: CallId,
    /// As the model wrote it; it may name no tool at all.
    pub name: String,
    pub args: Value,
    /// From [`crate::Chunk::ToolCall`], back to the wire that gave it.
    pub metadata: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct PastResult {
    pub call: CallId,
    pub name: String,
    /// What the model reads.
    pub content: String,
    pub is_error: bool,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    pub name: String,
    pub description: String,
    pub schema: Value,
}
