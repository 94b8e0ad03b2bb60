//! What plugins leave in a log: what they changed, said and remember.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::guarded::Guarded;
use crate::ids::{CallId, MessageId};
use crate::message::Part;
use crate::name::ToolName;
use crate::outcome::OutcomeKind;
use crate::tool::Visibility;

event! {
    /// A hook changed the answer after it was streamed.
    ReplyAmended {
        pub step: u32, // P
        pub message: MessageId, // P
        pub parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub show_reasoning: bool, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub by: Guarded<String>, // S
    }
}

event! {
    /// A hook changed a result before the model reads it.
    ResultAmended {
        pub call: CallId, // P
        pub tool: ToolName, // P
        pub visibility: Visibility, // P
        pub outcome: OutcomeKind, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub value: Guarded<Value>, // T
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub error: Guarded<String>, // T
        /// The hook found that it speaks for somebody outside.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[ts(as = "Option<bool>", optional)]
        pub untrusted: bool, // P
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub by: Guarded<String>, // S
    }
}

event! {
    /// A plugin tells readers something.
    PluginEmitted {
        pub plugin: String, // P
        pub name: String, // P
        pub value: Value, // P
    }
}

event! {
    /// A plugin's memory at the end of a step.
    PluginStateSaved {
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub plugin: Guarded<String>, // S
        #[serde(default, skip_serializing_if = "Guarded::is_hidden")]
        pub state: Guarded<Value>, // S
    }
}
