//! One tool of a server, checked: what the model sees, and what a permission
//! was given for.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::{Hash, ToolName, limits};
use toolyard_schema::{Limits, Schemas, Source, ToolSchema, clean, find_hidden};

use crate::settings::ServerName;
use crate::wire::pending::REFUSED;

/// What a server says of its tool. Hints, not facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hints {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl Hints {
    fn read(annotations: Option<&Value>) -> Self {
        let hint = |key: &str| annotations.and_then(|all| all.get(key)).and_then(Value::as_bool);
        Self {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }

    /// A second run has no second effect, if the hints are true.
    pub const fn repeats_safely(&self) -> bool {
        matches!((self.read_only, self.idempotent), (Some(true), _) | (_, Some(true)))
    }

    /// Row 25: a hint may raise what the name says, and lowers it only if the
    /// server is trusted.
    pub fn risk(&self, raw: &str, trusted: bool) -> Risk {
        if self.destructive == Some(true) && self.read_only != Some(true) {
            return Risk::High;
        }
        match self.read_only {
            Some(true) if trusted => Risk::Low,
            Some(_) | None => Risk::of_name(raw),
        }
    }
}

/// A tool of a server, without a name for the model yet.
#[derive(Debug, Clone)]
pub struct ListedTool {
    /// The server's own name of it.
    pub raw: String,
    pub title: Option<String>,
    /// Cleaned; says so if something was taken out.
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub hints: Hints,
    /// Hash of all that the server says of it, untouched.
    pub fingerprint: Hash,
    pub schema: ToolSchema,
}

/// A tool of a run.
#[derive(Debug, Clone)]
pub struct McpTool {
    /// What the model calls it. Never taken apart again.
    pub name: ToolName,
    pub server: ServerName,
    pub risk: Risk,
    pub trusted: bool,
    pub tool: std::sync::Arc<ListedTool>,
}

impl McpTool {
    /// A call may be repeated when its fate is unknown.
    pub fn repeats_safely(&self) -> bool {
        self.trusted && self.tool.hints.repeats_safely()
    }
}

/// A tool that the model does not get, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    pub name: String,
    pub why: String,
}

/// Bytes of a server's own tool name.
const RAW_NAME: usize = 256;

/// Reads one entry of a list. Compiles its schema, so it may take a while.
pub(crate) fn read(server: &ServerName, entry: &Value, schemas: &Schemas) -> Result<ListedTool, LeftOut> {
    let shown = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    let refuse = |why: String| LeftOut { name: clean(shown, 128).text, why };
    if let Some(why) = entry.get(REFUSED).and_then(Value::as_str) {
        return Err(refuse(why.to_owned()));
    }
    if shown.is_empty() {
        return Err(refuse("it has no name".to_owned()));
    }
    if shown.len() > RAW_NAME || find_hidden(shown).is_some() {
        return Err(refuse(format!("its name is longer than {RAW_NAME} bytes or has hidden characters")));
    }
    let mut input_schema = match entry.get("inputSchema") {
        None | Some(Value::Null) => json!({ "type": "object" }),
        Some(schema) => schema.clone(),
    };
    // Sizes are judged before anything is walked.
    let limits = Limits {
        source: Source::Trusted,
        max_tools: limits::MCP_TOOLS,
        max_depth: limits::MCP_SCHEMA_DEPTH,
        max_properties: 256,
    };
    let schema =
        schemas.compile(&input_schema, &limits).map_err(|e| refuse(format!("its schema is refused: {e}")))?;
    let fingerprint = Hash::of_json(&json!([
        server.as_str(),
        shown,
        entry.get("title"),
        entry.get("description"),
        entry.get("inputSchema"),
        entry.get("outputSchema"),
        entry.get("annotations"),
    ]));
    if let Some(key) = clean_schema(&mut input_schema) {
        return Err(refuse(format!("its schema has hidden characters in {key:?}")));
    }
    let annotations = entry.get("annotations");
    let title = entry.get("title").or_else(|| annotations.and_then(|all| all.get("title")));
    Ok(ListedTool {
        raw: shown.to_owned(),
        title: title.and_then(Value::as_str).map(|text| clean(text, 256).text),
        description: describe(entry.get("description").and_then(Value::as_str).unwrap_or_default()),
        input_schema,
        output_schema: entry.get("outputSchema").filter(|schema| schema.is_object()).cloned(),
        hints: Hints::read(annotations),
        fingerprint,
        schema,
    })
}

/// Text for the model without what people would not see.
fn describe(text: &str) -> String {
    const MARK: &str = " [altered: hidden or overlong text was removed]";
    let plain = without_comments(text);
    let cleaned = clean(&plain, limits::MCP_DESCRIPTION_BYTES);
    if cleaned.altered || plain.len() != text.len() {
        let kept = clean(&cleaned.text, limits::MCP_DESCRIPTION_BYTES - MARK.len()).text;
        return format!("{kept}{MARK}");
    }
    cleaned.text
}

/// HTML comments are invisible where descriptions are rendered.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        out.push_str(&rest[..start]);
        rest = match rest[start..].find("-->") {
            Some(end) => &rest[start + end + 3..],
            None => "",
        };
    }
    out.push_str(rest);
    out
}

/// Cleans the texts of a schema. Returns the first name or constant that has
/// hidden characters: those cannot be changed without changing the schema.
fn clean_schema(value: &mut Value) -> Option<String> {
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                if find_hidden(key).is_some() {
                    return Some(key.escape_unicode().take(64).collect());
                }
                match inner {
                    Value::String(text) if matches!(key.as_str(), "description" | "title" | "$comment") => {
                        *text = describe(text);
                    }
                    _ => {
                        if let Some(found) = clean_schema(inner) {
                            return Some(found);
                        }
                    }
                }
            }
            None
        }
        Value::Array(items) => items.iter_mut().find_map(clean_schema),
        Value::String(text) => find_hidden(text).map(|_| text.escape_unicode().take(64).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The tools that somebody has seen before, by (server, the server's name).
pub type Pins = BTreeMap<(String, String), Hash>;

/// How a tool stands to what was seen before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    Same,
    /// Not seen before. On a server whose tools were seen it is a change too:
    /// a renamed tool must not pass as a harmless one.
    New,
    Changed {
        before: Hash,
    },
}

impl McpTool {
    /// Compares with what was pinned on first use.
    pub fn pin(&self, pins: &Pins) -> Pin {
        match pins.get(&(self.server.as_str().to_owned(), self.tool.raw.clone())) {
            None => Pin::New,
            Some(before) if *before == self.tool.fingerprint => Pin::Same,
            Some(before) => Pin::Changed { before: before.clone() },
        }
    }
}
