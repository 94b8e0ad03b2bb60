//! Which plugins and tools there are, and the rules for new ones (row H29).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolyard_schema::{Limits, NameRule, ToolSchema};

use super::requires::Requirement;
use super::{Handled, Plugin, PluginError};
use crate::tool::{Tool, ToolDefinition};

/// A tool of the book. Without code it is answered by a hook.
#[derive(Clone)]
struct Known {
    definition: ToolDefinition,
    tool: Option<Arc<dyn Tool>>,
}

struct Entry {
    plugin: Arc<dyn Plugin>,
    tools: Vec<Known>,
}

/// Who executes a call.
pub(crate) enum Chosen {
    Tool(Arc<dyn Tool>),
    Hook(Handled),
}

/// All of one client.
#[derive(Default)]
pub(crate) struct Registry {
    plugins: Vec<Entry>,
    /// Tools that belong to no plugin.
    own: Vec<Known>,
}

/// How a refused tool's owner is named in the text about it.
fn prefix(plugin: Option<&str>) -> String {
    plugin.map_or_else(String::new, |name| format!("Plugin \"{name}\": "))
}

impl Registry {
    fn entry(&self, plugin: &str) -> Option<&Entry> {
        self.plugins.iter().find(|entry| entry.plugin.name() == plugin)
    }

    /// Takes a place for a plugin; its tools follow when they are known.
    pub(super) fn reserve(&mut self, plugin: Arc<dyn Plugin>) -> Result<(), PluginError> {
        let name = plugin.name().to_owned();
        if name.trim().is_empty() {
            return Err(PluginError::NameMissing);
        }
        if plugin.version().trim().is_empty() {
            return Err(PluginError::VersionMissing { plugin: name });
        }
        if self.entry(&name).is_some() {
            return Err(PluginError::Already { plugin: name });
        }
        for text in plugin.requires() {
            let requirement = Requirement::parse(&name, &text)?;
            let Some(found) = self.entry(&requirement.name) else {
                return Err(PluginError::RequiresMissing { plugin: name, needs: requirement.name });
            };
            requirement.check(&name, found.plugin.version())?;
        }
        self.plugins.push(Entry { plugin, tools: Vec::new() });
        Ok(())
    }

    /// Checks a plugin's tools and puts them in the place of its former ones.
    pub(super) fn fill(&mut self, plugin: &Arc<dyn Plugin>) -> Result<usize, PluginError> {
        let name = plugin.name().to_owned();
        let tools = self.checked(Some(&name), plugin.definitions(), &plugin.tools())?;
        let count = tools.len();
        match self.plugins.iter_mut().find(|entry| entry.plugin.name() == name) {
            Some(entry) => entry.tools = tools,
            None => return Err(PluginError::NotRegistered { plugin: name }),
        }
        Ok(count)
    }

    /// Adds a tool that belongs to no plugin (row H2).
    pub(super) fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), PluginError> {
        let definition = tool.definition();
        if self.own.iter().any(|known| known.definition.name == definition.name) {
            return Err(PluginError::ToolAlready { tool: definition.name });
        }
        let mut tools = self.checked(None, vec![definition], &[tool])?;
        self.own.append(&mut tools);
        Ok(())
    }

    pub(super) fn drop_tool(&mut self, name: &str) -> Result<(), PluginError> {
        let before = self.own.len();
        self.own.retain(|known| known.definition.name != name);
        if self.own.len() == before {
            return Err(PluginError::ToolNotRegistered { tool: name.to_owned() });
        }
        Ok(())
    }

    fn checked(
        &self,
        plugin: Option<&str>,
        definitions: Vec<ToolDefinition>,
        tools: &[Arc<dyn Tool>],
    ) -> Result<Vec<Known>, PluginError> {
        let owner = || prefix(plugin);
        let mut code: BTreeMap<String, Arc<dyn Tool>> = BTreeMap::new();
        for tool in tools {
            code.insert(tool.definition().name, Arc::clone(tool));
        }
        let mut names = BTreeSet::new();
        let mut known = Vec::with_capacity(definitions.len());
        for definition in definitions {
            let tool = definition.name.clone();
            check_definition(&owner(), &definition)?;
            if !names.insert(tool.clone()) {
                return Err(PluginError::Twice { owner: owner(), tool });
            }
            if let Some(other) = self.owner_of(&tool, plugin) {
                return Err(PluginError::Conflict { owner: owner(), tool, other });
            }
            known.push(Known { definition, tool: code.remove(&tool) });
        }
        if let Some(tool) = code.into_keys().next() {
            return Err(PluginError::ExecutorAlone { owner: owner(), tool });
        }
        Ok(known)
    }

    /// Who else has a tool of this name.
    fn owner_of(&self, tool: &str, but: Option<&str>) -> Option<String> {
        let has = |tools: &[Known]| tools.iter().any(|known| known.definition.name == tool);
        if but.is_some() && has(&self.own) {
            return Some("registerTool".to_owned());
        }
        let others = self.plugins.iter().filter(|entry| Some(entry.plugin.name()) != but);
        others.into_iter().find(|entry| has(&entry.tools)).map(|entry| entry.plugin.name().to_owned())
    }

    /// Takes a plugin out, unless another one needs it.
    pub(super) fn remove(&mut self, name: &str) -> Result<Arc<dyn Plugin>, PluginError> {
        let found = self.plugins.iter().position(|entry| entry.plugin.name() == name);
        let Some(at) = found else { return Err(PluginError::NotRegistered { plugin: name.to_owned() }) };
        for other in &self.plugins {
            let by = other.plugin.name();
            for text in other.plugin.requires() {
                if Requirement::parse(by, &text).is_ok_and(|needs| needs.name == name) {
                    return Err(PluginError::RequiredBy { plugin: name.to_owned(), by: by.to_owned() });
                }
            }
        }
        Ok(self.plugins.remove(at).plugin)
    }

    pub(crate) fn plugins(&self) -> Vec<Arc<dyn Plugin>> {
        self.plugins.iter().map(|entry| Arc::clone(&entry.plugin)).collect()
    }

    fn all(&self) -> impl Iterator<Item = &Known> {
        self.own.iter().chain(self.plugins.iter().flat_map(|entry| &entry.tools))
    }

    pub(crate) fn definitions(&self) -> Vec<ToolDefinition> {
        self.all().map(|known| known.definition.clone()).collect()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.all().find(|known| known.definition.name == name)?.tool.clone()
    }
}

fn check_definition(owner: &str, definition: &ToolDefinition) -> Result<(), PluginError> {
    let (owner, tool) = (owner.to_owned(), definition.name.clone());
    if !NameRule::Chat.accepts(&tool) {
        return Err(PluginError::ToolName { owner, tool: tool.chars().take(64).collect() });
    }
    if definition.description.trim().is_empty() {
        return Err(PluginError::DescriptionMissing { owner, tool });
    }
    match ToolSchema::compile(&definition.schema, &Limits::request()) {
        Ok(_) => Ok(()),
        Err(why) => Err(PluginError::Schema { owner, tool, why: why.to_string() }),
    }
}
