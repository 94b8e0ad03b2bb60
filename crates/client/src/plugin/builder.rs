//! A plugin made of closures, for those that need no type of their own.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;

use super::{Handled, Plugin};
use crate::api::NewMessage;
use crate::call::ToolCall;
use crate::chat::ChatResponse;
use crate::client::Client;
use crate::tool::{Failure, Tool, ToolDefinition};

type Result0 = Result<(), Failure>;
type OnRegister = Box<dyn Fn(Client) -> BoxFuture<'static, Result0> + Send + Sync>;
type BeforeRequest = Box<dyn Fn(NewMessage) -> BoxFuture<'static, Result<NewMessage, Failure>> + Send + Sync>;
type AfterResponse = Box<dyn Fn(ChatResponse) -> BoxFuture<'static, Result0> + Send + Sync>;
type OnToolCall = Box<dyn Fn(&ToolCall) -> Option<Handled> + Send + Sync>;
type OnUnregister = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Begins a plugin: `plugin("time", "1.0.0").tool(…)`.
pub fn plugin(name: impl Into<String>, version: impl Into<String>) -> PluginBuilder {
    PluginBuilder {
        name: name.into(),
        version: version.into(),
        requires: Vec::new(),
        tools: Vec::new(),
        definitions: Vec::new(),
        on_register: None,
        before_request: None,
        after_response: None,
        on_tool_call: None,
        on_unregister: None,
    }
}

/// A plugin of closures.
#[must_use]
pub struct PluginBuilder {
    name: String,
    version: String,
    requires: Vec<String>,
    tools: Vec<Arc<dyn Tool>>,
    definitions: Vec<ToolDefinition>,
    on_register: Option<OnRegister>,
    before_request: Option<BeforeRequest>,
    after_response: Option<AfterResponse>,
    on_tool_call: Option<OnToolCall>,
    on_unregister: Option<OnUnregister>,
}

impl fmt::Debug for PluginBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PluginBuilder {
    /// Another plugin that must be there first: `name` or `name@range`.
    pub fn requires(mut self, other: impl Into<String>) -> Self {
        self.requires.push(other.into());
        self
    }
    /// A tool with its code.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.definitions.push(tool.definition());
        self.tools.push(tool);
        self
    }
    /// A tool whose calls `on_tool_call` answers, or an [`Self::executor`].
    pub fn declare(mut self, definition: ToolDefinition) -> Self {
        self.definitions.push(definition);
        self
    }
    /// Code for a tool that was declared.
    pub fn executor(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }
    pub fn on_register<R>(mut self, hook: impl Fn(Client) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result0> + Send + 'static,
    {
        self.on_register = Some(Box::new(move |client| Box::pin(hook(client))));
        self
    }
    pub fn before_request<R>(mut self, hook: impl Fn(NewMessage) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result<NewMessage, Failure>> + Send + 'static,
    {
        self.before_request = Some(Box::new(move |request| Box::pin(hook(request))));
        self
    }
    pub fn after_response<R>(mut self, hook: impl Fn(ChatResponse) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result0> + Send + 'static,
    {
        self.after_response = Some(Box::new(move |response| Box::pin(hook(response))));
        self
    }
    pub fn on_tool_call(
        mut self,
        hook: impl Fn(&ToolCall) -> Option<Handled> + Send + Sync + 'static,
    ) -> Self {
        self.on_tool_call = Some(Box::new(hook));
        self
    }
    pub fn on_unregister<R>(mut self, hook: impl Fn() -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = ()> + Send + 'static,
    {
        self.on_unregister = Some(Box::new(move || Box::pin(hook())));
        self
    }
}

#[async_trait]
impl Plugin for PluginBuilder {
    fn name(&self) -> &str {
        &self.name
    }
    fn version(&self) -> &str {
        &self.version
    }
    fn requires(&self) -> Vec<String> {
        self.requires.clone()
    }
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.definitions.clone()
    }
    async fn on_register(&self, client: &Client) -> Result0 {
        match &self.on_register {
            Some(hook) => hook(client.clone()).await,
            None => Ok(()),
        }
    }
    async fn before_request(&self, request: NewMessage) -> Result<NewMessage, Failure> {
        match &self.before_request {
            Some(hook) => hook(request).await,
            None => Ok(request),
        }
    }
    async fn after_response(&self, response: &ChatResponse) -> Result0 {
        match &self.after_response {
            Some(hook) => hook(response.clone()).await,
            None => Ok(()),
        }
    }
    fn on_tool_call(&self, call: &ToolCall) -> Option<Handled> {
        self.on_tool_call.as_ref().and_then(|hook| hook(call))
    }
    async fn on_unregister(&self) {
        if let Some(hook) = &self.on_unregister {
            hook().await;
        }
    }
}
