//! Plugins: bundles of tools and hooks that this program registers.

mod book;
mod builder;
mod error;
mod register;
mod requires;

pub use builder::{PluginBuilder, plugin};
pub use error::PluginError;

pub(crate) use book::{Chosen, Registry};

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;

use crate::api::NewMessage;
use crate::call::ToolCall;
use crate::chat::ChatResponse;
use crate::client::Client;
use crate::journal::Outcome;
use crate::tool::{Failure, Tool, ToolDefinition};

/// A call that a hook has taken: it runs when it is awaited.
pub type Handled = BoxFuture<'static, Outcome>;

/// A plugin. Hooks run in the order of registration.
#[async_trait]
pub trait Plugin: Send + Sync + 'static {
    fn name(&self) -> &str;

    fn version(&self) -> &str;

    /// Plugins that must be there first: `name` or `name@range` (row H67).
    fn requires(&self) -> Vec<String> {
        Vec::new()
    }

    /// Tools with their code. Asked after `on_register`, so that tools which
    /// are discovered there count.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// What the model reads. A definition without code is answered by
    /// `on_tool_call`.
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools().iter().map(|tool| tool.definition()).collect()
    }

    async fn on_register(&self, client: &Client) -> Result<(), Failure> {
        let _ = client;
        Ok(())
    }

    /// May change a message before it is sent.
    async fn before_request(&self, request: NewMessage) -> Result<NewMessage, Failure> {
        Ok(request)
    }

    async fn after_response(&self, response: &ChatResponse) -> Result<(), Failure> {
        let _ = response;
        Ok(())
    }

    /// Takes a call that no tool of a plugin executes. `None` means "not mine",
    /// and must be said without doing anything.
    fn on_tool_call(&self, call: &ToolCall) -> Option<Handled> {
        let _ = call;
        None
    }

    async fn on_unregister(&self) {}
}

/// A plugin that the program keeps a hand on.
#[async_trait]
impl<P: Plugin + ?Sized> Plugin for Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn version(&self) -> &str {
        (**self).version()
    }
    fn requires(&self) -> Vec<String> {
        (**self).requires()
    }
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        (**self).tools()
    }
    fn definitions(&self) -> Vec<ToolDefinition> {
        (**self).definitions()
    }
    async fn on_register(&self, client: &Client) -> Result<(), Failure> {
        (**self).on_register(client).await
    }
    async fn before_request(&self, request: NewMessage) -> Result<NewMessage, Failure> {
        (**self).before_request(request).await
    }
    async fn after_response(&self, response: &ChatResponse) -> Result<(), Failure> {
        (**self).after_response(response).await
    }
    fn on_tool_call(&self, call: &ToolCall) -> Option<Handled> {
        (**self).on_tool_call(call)
    }
    async fn on_unregister(&self) {
        (**self).on_unregister().await;
    }
}
