//! What is sent, and how its calls are handled.

use std::sync::Arc;

use toolyard_protocol::{EntityId, SpaceId};

use super::response::ChatResponse;
use super::stream::ChatStream;
use crate::api::NewMessage;
use crate::call::ToolCall;
use crate::client::{Client, ClientEvent};
use crate::error::ClientError;
use crate::perform::Override;
use crate::plugin::{Handled, PluginError};

/// Rounds of results that one message may need (row H35).
const MAX_TOOL_ROUNDS: u32 = 5;

/// A message on its way.
#[must_use]
pub struct Chat {
    client: Client,
    space: SpaceId,
    message: NewMessage,
    max_tool_rounds: u32,
    on_tool_call: Option<Override>,
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").field("space", &self.space).finish_non_exhaustive()
    }
}

impl Client {
    /// Says something in a space. Nothing is sent before [`Chat::stream`] or
    /// [`Chat::response`].
    pub fn chat(&self, space: &SpaceId, content: impl Into<String>) -> Chat {
        self.chat_with(space, NewMessage::text(content))
    }

    pub fn chat_with(&self, space: &SpaceId, message: NewMessage) -> Chat {
        Chat {
            client: self.clone(),
            space: space.clone(),
            message,
            max_tool_rounds: MAX_TOOL_ROUNDS,
            on_tool_call: None,
        }
    }
}

impl Chat {
    /// Who speaks: needed with a secret key.
    pub fn from(mut self, entity: &EntityId) -> Self {
        self.message.entity_id = Some(entity.clone());
        self
    }

    /// How often results are sent back at most; 0 means without limit. A tool
    /// is not executed if its result can no longer be sent.
    pub fn max_tool_rounds(mut self, rounds: u32) -> Self {
        self.max_tool_rounds = rounds;
        self
    }

    /// Sends no definitions: the agent has these tools in its configuration,
    /// and this program only executes them.
    pub fn without_tools(mut self) -> Self {
        self.message.client_tools = Some(Vec::new());
        self
    }

    /// Takes calls before the plugins do. `None` means "as usual", and must be
    /// said without doing anything.
    pub fn on_tool_call(
        mut self,
        option: impl Fn(&ToolCall) -> Option<Handled> + Send + Sync + 'static,
    ) -> Self {
        self.on_tool_call = Some(Arc::new(option));
        self
    }

    /// Sends the message and follows what it starts.
    pub async fn stream(self) -> Result<ChatStream, ClientError> {
        let Self { client, space, mut message, max_tool_rounds, on_tool_call } = self;
        // A hook may still take tools away, or add some.
        message.client_tools = message.client_tools.or_else(|| client.client_tools());
        message.client_tools = message.client_tools.filter(|tools| !tools.is_empty());
        let plugins = client.shared.registry().plugins();
        for plugin in plugins {
            let name = plugin.name();
            client.shared.say(|| format!("hook beforeRequest of {name}"));
            message = plugin.before_request(message).await.map_err(|why| PluginError::Hook {
                plugin: name.to_owned(),
                hook: "beforeRequest",
                why: why.to_string(),
            })?;
        }
        let posted = client.spaces().post(&space, &message).await?;
        client.shared.tell(&ClientEvent::StreamStart);
        Ok(ChatStream::new(client, posted, max_tool_rounds, on_tool_call))
    }

    /// Sends the message and waits for the whole answer.
    pub async fn response(self) -> Result<ChatResponse, ClientError> {
        Box::pin(self.stream()).await?.response().await
    }
}
