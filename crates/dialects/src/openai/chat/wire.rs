//! The objects of a chat completion.

use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::run::Usage;

/// A piece of a streamed completion.
#[derive(Debug, Serialize)]
pub(super) struct Chunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: i64,
    pub(super) model: &'a str,
    pub(super) choices: Vec<ChunkChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<ChatUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) toolyard: Option<&'a Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct ChunkChoice<'a> {
    pub(super) index: u32,
    pub(super) delta: Delta<'a>,
    pub(super) finish_reason: Option<&'static str>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a str>,
    /// Not in the API, but what many programs read thoughts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) annotations: Vec<Value>,
}

/// A call that the client is to run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ToolCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Function,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// A completion in one piece.
#[derive(Debug, Serialize)]
pub(super) struct Completion<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: i64,
    pub(super) model: &'a str,
    pub(super) choices: Vec<Choice<'a>>,
    pub(super) usage: ChatUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) toolyard: Option<&'a Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct Choice<'a> {
    pub(super) index: u32,
    pub(super) message: Message<'a>,
    pub(super) logprobs: Option<()>,
    pub(super) finish_reason: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Option<&'a str>,
    pub(super) refusal: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall>,
    /// The sources of what is said.
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    pub(super) annotations: &'a [Value],
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl From<Usage> for ChatUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens + usage.output_tokens,
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached_tokens },
            completion_tokens_details: CompletionDetails { reasoning_tokens: usage.reasoning_tokens },
        }
    }
}
