//! Parts of messages in the words of the native dialect.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::message::Part;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::{CallId, FileId, OutcomeKind, ToolName, Viewer};
use ts_rs::TS;

/// A part as a reader gets it. A private tool shows its name only (row G32).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[ts(optional_fields)]
pub enum PartView<'a> {
    Text {
        text: &'a str,
    },
    Reasoning {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_metadata: Option<&'a Value>,
    },
    File {
        media_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a FileId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    Source {
        id: &'a str,
        url: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        start_index: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end_index: Option<u32>,
    },
    ToolCall {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        visibility: Option<Visibility>,
    },
    ToolResult {
        tool_call_id: &'a CallId,
        tool_name: &'a ToolName,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<OutcomeKind>,
        #[serde(skip_serializing_if = "Option::is_none")]
        visibility: Option<Visibility>,
    },
    Data {
        name: &'a str,
        value: &'a Value,
    },
}

/// Does this viewer get more of a tool than its id and name?
pub(super) fn is_open(viewer: &Viewer, visibility: Visibility) -> bool {
    viewer.sees_all() || visibility == Visibility::Public
}

/// Parts that went through [`toolyard_protocol::visible`] for this viewer.
pub fn part_views<'p>(parts: &'p [Part], viewer: &Viewer) -> Vec<PartView<'p>> {
    parts.iter().filter_map(|part| part_view(part, viewer)).collect()
}

fn part_view<'p>(part: &'p Part, viewer: &Viewer) -> Option<PartView<'p>> {
    Some(match part {
        Part::Text { text } => PartView::Text { text },
        Part::Reasoning { text, metadata } => {
            PartView::Reasoning { text, provider_metadata: metadata.shown() }
        }
        Part::File { media_type, file, url, name } => {
            PartView::File { media_type, file_id: file.as_ref(), url: url.as_deref(), name: name.as_deref() }
        }
        Part::Source { id, url, title, start_index, end_index } => PartView::Source {
            id,
            url,
            title: title.as_deref(),
            start_index: *start_index,
            end_index: *end_index,
        },
        Part::ToolCall { call, tool, visibility, args, metadata: _ } => PartView::ToolCall {
            tool_call_id: call,
            tool_name: tool,
            input: args.shown(),
            visibility: is_open(viewer, *visibility).then_some(*visibility),
        },
        Part::ToolResult { call, tool, visibility, outcome, value, error } => {
            let open = is_open(viewer, *visibility);
            PartView::ToolResult {
                tool_call_id: call,
                tool_name: tool,
                output: value.shown(),
                error: error.shown().map(String::as_str),
                outcome: open.then_some(*outcome),
                visibility: open.then_some(*visibility),
            }
        }
        Part::Data { name, value } => PartView::Data { name, value },
        // It means nothing to anyone but its vendor.
        Part::Opaque { value: _ } => return None,
    })
}
