//! Registering and unregistering, with the hooks around it.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::requires::ordered;
use super::{Plugin, PluginError};
use crate::call::ToolCall;
use crate::client::Client;
use crate::error::ClientError;
use crate::journal::Outcome;
use crate::perform;
use crate::tool::{Tool, ToolDefinition, definition_json};

impl Client {
    /// Registers one tool without a plugin (row H2).
    pub fn register_tool(&self, tool: Arc<dyn Tool>) -> Result<&Self, PluginError> {
        let name = tool.definition().name;
        self.shared.registry().add(tool)?;
        self.shared.say(|| format!("tool {name} registered"));
        Ok(self)
    }

    pub fn unregister_tool(&self, name: &str) -> Result<(), PluginError> {
        self.shared.registry().drop_tool(name)
    }

    /// Registers a plugin: checks it, runs its `on_register`, then takes its
    /// tools. A plugin that is refused leaves nothing behind.
    pub async fn register(&self, plugin: impl Plugin) -> Result<&Self, PluginError> {
        self.register_one(Arc::new(plugin)).await
    }

    /// Registers several, each after those that it requires. Stops at the
    /// first that is refused.
    pub async fn register_all(&self, plugins: Vec<Arc<dyn Plugin>>) -> Result<&Self, PluginError> {
        for plugin in ordered(plugins)? {
            self.register_one(plugin).await?;
        }
        Ok(self)
    }

    async fn register_one(&self, plugin: Arc<dyn Plugin>) -> Result<&Self, PluginError> {
        let name = plugin.name().to_owned();
        self.shared.registry().reserve(Arc::clone(&plugin))?;
        if let Err(why) = plugin.on_register(self).await {
            let _ = self.shared.registry().remove(&name);
            let why = why.to_string();
            return Err(PluginError::Hook { plugin: name, hook: "onRegister", why });
        }
        let filled = self.shared.registry().fill(&plugin);
        match filled {
            Ok(tools) => {
                self.shared.say(|| format!("plugin {name} {} registered, tools: {tools}", plugin.version()));
                Ok(self)
            }
            Err(refused) => {
                let _ = self.shared.registry().remove(&name);
                plugin.on_unregister().await;
                Err(refused)
            }
        }
    }

    /// Reads the tools of a plugin again, after they changed.
    pub fn renew(&self, plugin: &str) -> Result<(), PluginError> {
        let found = self.shared.registry().plugins().into_iter().find(|known| known.name() == plugin);
        let found = found.ok_or_else(|| PluginError::NotRegistered { plugin: plugin.to_owned() })?;
        self.shared.registry().fill(&found).map(|_| ())
    }

    /// Removes a plugin and its tools, then runs its `on_unregister`.
    pub async fn unregister(&self, name: &str) -> Result<(), PluginError> {
        let plugin = self.shared.registry().remove(name)?;
        plugin.on_unregister().await;
        self.shared.say(|| format!("plugin {name} unregistered"));
        Ok(())
    }

    /// Unregisters all, the last one first: at the end of a program.
    pub async fn unregister_all(&self) {
        for name in self.plugin_names().into_iter().rev() {
            let _ = self.unregister(&name).await;
        }
    }

    pub fn has_plugin(&self, name: &str) -> bool {
        self.plugin_names().iter().any(|known| known == name)
    }

    /// In the order of registration.
    pub fn plugin_names(&self) -> Vec<String> {
        self.shared.registry().plugins().iter().map(|plugin| plugin.name().to_owned()).collect()
    }

    /// Every tool that this client brings.
    pub fn tool_definitions(&self) -> Vec<ToolDefinition> {
        self.shared.registry().definitions()
    }

    pub(crate) fn client_tools(&self) -> Option<Vec<Value>> {
        let all: Vec<Value> = self.tool_definitions().iter().map(definition_json).collect();
        (!all.is_empty()).then_some(all)
    }

    pub fn has_executor(&self, tool: &str) -> bool {
        self.shared.registry().tool(tool).is_some()
    }

    /// Executes a call here and now, without telling the gateway.
    pub async fn execute(&self, call: &ToolCall) -> Result<Outcome, ClientError> {
        let chosen = perform::choose(self, call, None);
        let chosen = chosen.ok_or_else(|| PluginError::NoExecutor { tool: call.name.clone() })?;
        Ok(perform::run(self, call, chosen, &CancellationToken::new()).await)
    }
}
