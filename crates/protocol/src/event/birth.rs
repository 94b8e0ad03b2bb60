//! Parts of events: where a run comes from, what a child brings home, what a
//! paused run waits for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ids::{CallId, EntityId, MessageId, RunId, WaitId};
use crate::name::ToolName;
use crate::run::Usage;
use crate::tool::Visibility;
use crate::wait::WaitKind;

event! {
    /// What made a run start: somebody, mostly by a message.
    Trigger {
        pub entity: EntityId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub message: Option<MessageId>,
    }
}

event! {
    /// The call of another run that this run answers.
    Parent {
        pub run: RunId,
        pub call: CallId,
    }
}

event! {
    /// The run that this one begins with: all that it said and did before a step.
    Replayed {
        pub run: RunId,
        /// The step that is done anew.
        pub step: u32,
    }
}

event! {
    /// What a child run is sent to do.
    Errand {
        pub prompt: String,
        /// Of the call that sent it: who may look into the child.
        pub visibility: Visibility,
    }
}

event! {
    /// What a child used; it counts against its parent's budget too.
    #[derive(Copy, Eq)]
    Spent {
        pub usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(type = "number", optional)]
        pub cost: Option<u64>,
    }
}

event! {
    /// A wait, as a paused run lists it.
    OpenWait {
        pub wait: WaitId, // P
        pub kind: WaitKind, // P
        pub call: CallId, // P
        pub tool: ToolName, // P
    }
}
