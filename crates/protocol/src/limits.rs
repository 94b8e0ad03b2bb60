//! Every limit by name. Its number stands in the error that it causes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Longest tool name.
pub const TOOL_NAME: usize = 64;
/// Bytes of a tool's version.
pub const TOOL_VERSION: usize = 64;
/// Bytes of the advice that stands beside a deprecated tool.
pub const TOOL_ADVICE: usize = 256;
/// Bytes of a tool's category and of its service's id.
pub const TOOL_LABEL: usize = 64;
/// Tools that one request with a public key brings, unless configured.
pub const PUBLIC_TOOLS: usize = 10;
/// Tools that one request with a secret key brings, unless configured.
pub const SECRET_TOOLS: usize = 128;
/// Longest agent name.
pub const AGENT_NAME: usize = 64;
/// Bytes of a body on routes without a limit of their own.
pub const BODY_BYTES: usize = 1 << 20;
/// Bytes of a body on conversation routes.
pub const CONVERSATION_BODY_BYTES: usize = 16 << 20;
/// Bytes of a body that brings tool results.
pub const RESULT_BODY_BYTES: usize = 10 << 20;
/// Nesting of a JSON body.
pub const JSON_DEPTH: usize = 64;
/// Bytes of a value that stays inside its event; a larger one is a blob.
pub const INLINE_VALUE_BYTES: usize = 64 << 10;
/// Characters of a blob that its event shows.
pub const BLOB_PREVIEW_CHARS: usize = 512;
/// Tokens of one result that the model reads, unless configured.
pub const TOOL_RESULT_TOKENS: usize = 25_000;
/// Characters that count as one token.
pub const TOKEN_CHARS: usize = 4;
/// Characters of a result that one call of `readResult` reads on.
pub const READ_RESULT_CHARS: usize = 12_000;
/// Characters of a result that one request for a piece of it gets.
pub const RESULT_PIECE_CHARS: usize = 100_000;
/// Bytes of a file that a sample plugin of the client reads or writes, and of
/// the rows of a query.
pub const CLIENT_FILE_BYTES: u64 = 1 << 20;
/// Entries of a folder that a sample plugin of the client lists.
pub const CLIENT_FOLDER_ENTRIES: usize = 1000;
/// Rows that a query of a sample plugin of the client answers.
pub const CLIENT_QUERY_ROWS: usize = 500;
/// How long such a query may take.
pub const CLIENT_QUERY_MS: u64 = 10_000;
/// Results in one batch.
pub const RESULT_BATCH: usize = 64;
/// Rows of a list when the caller does not say.
pub const PAGE: u32 = 50;
/// Rows of a list at most.
pub const PAGE_MAX: u32 = 200;
/// Messages of a client's history that one request may bring anew.
pub const TURN_ITEMS: usize = 500;
/// Spaces of an entity whose stream follows all of them.
pub const ENTITY_SPACES: usize = 100;
/// Events read from the log at once by a stream.
pub const LOG_PAGE: u32 = 200;
/// Seconds that a claim of a wait lasts.
pub const CLAIM_SECONDS: u64 = 60;
/// Default expiry of a client tool call.
pub const CLIENT_EXPIRES_MS: u64 = 24 * 60 * 60 * 1000;
/// Default time of a gateway tool.
pub const TOOL_TIMEOUT_MS: u64 = 30_000;
/// Longest pause of a `waiting` tool.
pub const WAITING_MAX_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Recoveries of a run without progress before it is isolated.
pub const RECOVERIES: u32 = 5;
/// Agents that call agents that call agents, below the first.
pub const CHILD_DEPTH: u32 = 4;
/// Runs below one root run, over all of its life.
pub const CHILDREN: i64 = 64;
/// Depth of agents that trigger agents in a space.
pub const TRIGGER_DEPTH: u32 = 5;
/// Bytes of an uploaded file.
pub const FILE_BYTES: usize = 10 << 20;
/// Characters of a name, title or external id.
pub const LABEL_CHARS: usize = 256;
/// Bytes of a metadata object.
pub const METADATA_BYTES: usize = 16 << 10;
/// Bytes of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY: usize = 255;
/// Hours that an answer is kept for its `Idempotency-Key`.
pub const IDEMPOTENCY_HOURS: u64 = 24;
/// Tools that a model is offered at once; of more it gets a search.
pub const SEARCH_TOOLS_ABOVE: usize = 64;
/// Calls taken from one model reply.
pub const CALLS_PER_STEP: usize = 32;

/// Events that plugins may add to one step.
pub const PLUGIN_EVENTS: usize = 64;
/// Signs in the name of an event of a plugin.
pub const PLUGIN_EVENT_NAME: usize = 64;
/// Spans of a trace that the plugins of one step record.
pub const PLUGIN_SPANS: usize = 256;
/// Pieces of traces that wait for the collector.
pub const TRACE_QUEUE: usize = 1_024;
/// Spans that are sent together.
pub const TRACE_BATCH: usize = 512;
/// Bytes of what plugins remember of one run, as JSON.
pub const PLUGIN_STATE_BYTES: usize = 64 << 10;
/// How long one hook of a plugin's script may take.
pub const HOOK_TIME_MS: u64 = 2_000;

/// Goals of one entity.
pub const GOALS: usize = 200;
/// Goals in one call.
pub const GOAL_BATCH: usize = 50;
/// Characters of a goal's description.
pub const GOAL_CHARS: usize = 2_000;
/// Memories that one writer leaves with one agent.
pub const MEMORIES: usize = 1_000;
/// Characters of a memory's topic.
pub const TOPIC_CHARS: usize = 200;
/// Characters of a memory.
pub const MEMORY_CHARS: usize = 8_000;
/// Memories that one call reads.
pub const MEMORY_PAGE: u32 = 50;
/// Pending plans of one agent for one person.
pub const PLANS: usize = 100;
/// Characters of a plan's instruction.
pub const PLAN_CHARS: usize = 8_000;
/// Plans that one call reads.
pub const PLAN_PAGE: u32 = 100;
/// How long ago the moment of a new plan may be.
pub const PLAN_LATE_SECONDS: u64 = 60;
/// How soon a plan that an agent makes may start.
pub const PLAN_SOONEST_SECONDS: u64 = 10;
/// How far ahead a plan may lie.
pub const PLAN_DAYS: u64 = 5 * 366;
/// Bytes of the text that a document holds.
pub const DOCUMENT_TEXT_BYTES: usize = 4 << 20;
/// Characters of one piece of a document.
pub const CHUNK_CHARS: usize = 1_200;
/// Pieces that a search answers at most.
pub const SEARCH_RESULTS: usize = 20;
/// Characters of a search.
pub const SEARCH_CHARS: usize = 1_000;
/// Characters of a notification's title.
pub const NOTICE_TITLE_CHARS: usize = 200;
/// Characters of a notification's text.
pub const NOTICE_CHARS: usize = 4_000;

/// Bytes of uploaded files that one model call carries.
pub const MODEL_FILES_BYTES: i64 = 12 << 20;
/// The smallest context an agent may ask for, in tokens.
pub const CONTEXT_TOKENS_MIN: u32 = 256;
/// Messages that stay word for word when the rest is summarized.
pub const KEEP_LAST: u32 = 10;

/// Default time of a call in the sandbox.
pub const SANDBOX_TIME_MS: u64 = 5_000;
/// Longest time of a call in the sandbox.
pub const SANDBOX_TIME_MAX_MS: u64 = 60_000;
/// Default memory of a call in the sandbox.
pub const SANDBOX_MEMORY_BYTES: usize = 32 << 20;
/// Most memory of a call in the sandbox.
pub const SANDBOX_MEMORY_MAX_BYTES: usize = 256 << 20;
/// Default stack of a call in the sandbox.
pub const SANDBOX_STACK_BYTES: usize = 512 << 10;
/// Largest stack of a call in the sandbox.
pub const SANDBOX_STACK_MAX_BYTES: usize = 2 << 20;
/// Default size of a result from the sandbox, as JSON.
pub const SANDBOX_RESULT_BYTES: usize = 1 << 20;
/// Largest result from the sandbox, as JSON.
pub const SANDBOX_RESULT_MAX_BYTES: usize = 10 << 20;
/// What a call in the sandbox may write to its console.
pub const SANDBOX_CONSOLE_BYTES: usize = 64 << 10;
/// Code and arguments of a call in the sandbox.
pub const SANDBOX_INPUT_BYTES: usize = 4 << 20;
/// Timers that run at once in a call in the sandbox.
pub const SANDBOX_TIMERS: usize = 1_000;
/// Questions to the gateway that a call in the sandbox has open at once.
pub const SANDBOX_ASKS: usize = 32;
/// Calls that wait for a free sandbox process.
pub const SANDBOX_QUEUE: usize = 4_096;
/// Processor seconds after which a sandbox process is replaced.
pub const SANDBOX_PROCESS_CPU_SECONDS: u64 = 300;
/// Resident memory after which a sandbox process is replaced.
pub const SANDBOX_PROCESS_RESIDENT_BYTES: u64 = 48 << 20;
/// Longest name of a secret.
pub const SECRET_NAME: usize = 64;
/// Bytes of a secret.
pub const SECRET_BYTES: usize = 16 << 10;
/// Secrets of one tenant.
pub const SECRETS: usize = 1000;
/// Longest time of a `request` tool.
pub const REQUEST_MAX_MS: u64 = 10 * 60 * 1000;
/// Bytes of an answer to a `request` tool.
pub const REQUEST_ANSWER_BYTES: u64 = 4 << 20;
/// Seconds after its last sign that a client counts as there.
pub const PRESENCE_SECONDS: i64 = 60;
/// Seconds between two pings of a client's socket.
pub const SOCKET_PING_SECONDS: u64 = 20;
/// Seconds until a client's socket must have said who it is.
pub const SOCKET_REGISTER_SECONDS: u64 = 10;
/// Calls that one socket holds at once.
pub const SOCKET_CALLS: usize = 32;
/// Requests that are answered at once on one chat socket.
pub const CHAT_SOCKET_REQUESTS: usize = 16;
/// Chat sockets on one node that have not shown a key yet.
pub const CHAT_SOCKET_STRANGERS: usize = 256;
/// Sockets of one user on one node.
pub const SOCKETS_PER_USER: usize = 16;
/// Tools that one socket offers to execute.
pub const SOCKET_TOOLS: usize = 512;
/// Tools of one agent whose calls are counted.
pub const COUNTED_TOOLS: i64 = 1_000;
/// Times that one call may tell of its progress.
pub const PROGRESS: i64 = 200;
/// Characters of one word of progress.
pub const PROGRESS_CHARS: usize = 1_000;
/// Bytes of one preliminary result.
pub const PROGRESS_BYTES: usize = 16 << 10;
/// Webhooks of one tenant.
pub const WEBHOOKS: usize = 20;
/// Times that a parcel of the outbox is tried before it is given up.
pub const DELIVERY_ATTEMPTS: i64 = 15;
/// Redirects that a guarded request follows.
pub const REDIRECTS: usize = 3;
/// MCP servers of one agent.
pub const MCP_SERVERS: usize = 32;
/// Longest name of an MCP server.
pub const MCP_SERVER_NAME: usize = 32;
/// Connections to MCP servers that one gateway holds.
pub const MCP_LINKS: usize = 4096;
/// Tools taken from one MCP server.
pub const MCP_TOOLS: usize = 512;
/// Pages of one list of an MCP server.
pub const MCP_PAGES: usize = 100;
/// Depth of the schema of an MCP tool.
pub const MCP_SCHEMA_DEPTH: usize = 32;
/// Bytes of the description of an MCP tool.
pub const MCP_DESCRIPTION_BYTES: usize = 8 << 10;
/// Bytes of one message of an MCP server.
pub const MCP_MESSAGE_BYTES: usize = 4 << 20;
/// Bytes of an MCP server's last words that an error shows.
pub const MCP_STDERR_BYTES: usize = 4 << 10;
/// Keys of pages of the web app. One more ends the oldest.
pub const PAGE_KEYS: u32 = 32;
/// Sessions of MCP clients of the older era that a node holds open.
pub const MCP_SERVER_SESSIONS: usize = 1024;
/// Of these, the ones of one caller; one more ends the oldest.
pub const MCP_SERVER_SESSIONS_EACH: usize = 32;
/// A session that is silent for so long ends.
pub const MCP_SERVER_SESSION_SECONDS: u64 = 3600;
/// How often an open session is looked after: a change of the agent's tools is told then.
pub const MCP_SERVER_LOOK_SECONDS: u64 = 2;
/// Prompts that an agent offers to MCP clients.
pub const MCP_PROMPTS: usize = 64;
/// Longest name of such a prompt, and of an argument of one.
pub const MCP_PROMPT_NAME: usize = 64;
/// Characters of such a prompt.
pub const MCP_PROMPT_CHARS: usize = 16 << 10;
/// Arguments of one.
pub const MCP_PROMPT_ARGUMENTS: usize = 16;
/// A request of an MCP client.
pub const MCP_SERVER_BODY_BYTES: usize = 16 << 20;
/// After this a call of an MCP client that knows tasks becomes one.
pub const MCP_TASK_AFTER_MS: u64 = 10_000;
/// How often an MCP client should ask how a task is.
pub const MCP_TASK_POLL_MS: u64 = 1_000;
/// Default time for an MCP server to start.
pub const MCP_START_MS: u64 = 30_000;
/// Default time for a whole MCP call; its silence is bounded by [`TOOL_TIMEOUT_MS`].
pub const MCP_TOTAL_MS: u64 = 300_000;
/// Longest time-out that a configuration may ask for.
pub const MCP_TIMEOUT_MAX_MS: u64 = 24 * 60 * 60 * 1000;
/// Times that one MCP call may ask for input.
pub const MCP_ROUNDS: u32 = 5;
/// Documents of one tenant.
pub const DOCUMENTS: usize = 10_000;
/// Documents that one user has stored.
pub const USER_DOCUMENTS: usize = 500;
/// Logins at MCP servers that one user may have begun; the oldest are forgotten.
pub const MCP_LOGINS: usize = 20;
/// How long a login that has begun may be finished.
pub const MCP_LOGIN_MS: u64 = 60 * 60 * 1000;
/// Questions that an MCP server may ask at once.
pub const MCP_QUESTIONS: usize = 16;

/// Longest id of a plugin or a curator.
pub const PLUGIN_ID: usize = 64;
/// Bytes of a plugin's document.
pub const PLUGIN_BYTES: usize = 512 << 10;
/// Nesting of a plugin's document.
pub const PLUGIN_DEPTH: usize = 32;
/// Bytes of the code of one tool or hook of a plugin.
pub const PLUGIN_CODE_BYTES: usize = 64 << 10;
/// Tools of one plugin.
pub const PLUGIN_TOOLS: usize = 64;
/// Hosts that one plugin may ask for.
pub const PLUGIN_HOSTS: usize = 16;
/// Signatures on one plugin.
pub const PLUGIN_SIGNATURES: usize = 16;
/// Characters of a plugin's texts: its description, and its tools'.
pub const PLUGIN_TEXT_CHARS: usize = 4_000;
/// Plugins of one agent.
pub const AGENT_PLUGINS: usize = 32;
/// Tools of a vendor's own in an agent's configuration.
pub const PROVIDER_TOOLS: usize = 16;
/// Plugins that one tenant installs.
pub const PLUGINS: usize = 200;
/// Versions of one plugin that a tenant keeps.
pub const PLUGIN_VERSIONS: usize = 200;
/// Curators of one tenant.
pub const CURATORS: usize = 100;
/// Keys of one curator.
pub const CURATOR_KEYS: usize = 16;
/// Bits of the smallest RSA key of a curator.
pub const RSA_BITS_MIN: usize = 2048;
/// Requests that one call of a plugin's tool may send.
pub const PLUGIN_FETCHES: usize = 16;
/// Bytes of one answer to `fetch` in a plugin.
pub const PLUGIN_FETCH_BYTES: u64 = 1 << 20;
/// Bytes of an answer that is not streamed.
pub const WHOLE_ANSWER_BYTES: usize = 64 << 20;

/// What bounds one run. Pinned when the run is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", default)]
#[ts(optional_fields)]
pub struct RunLimits {
    /// Model calls with tools per user message; one call without tools follows.
    pub max_steps: u32,
    /// Model calls of the whole run.
    pub run_steps: u32,
    /// Tool failures in a row that stop the run.
    pub tool_failures: u32,
    /// Tokens, in and out, after which no further model call starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub max_tokens: Option<u64>,
    /// The same in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub max_cost: Option<u64>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { max_steps: 5, run_steps: 50, tool_failures: 3, max_tokens: None, max_cost: None }
    }
}
