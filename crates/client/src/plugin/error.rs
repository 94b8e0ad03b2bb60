//! Why a plugin or a tool is refused. The texts are part of the contract: the
//! TypeScript client says the same.

/// A refused registration, or a call that nobody takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    #[error("Plugin must have a name")]
    NameMissing,
    #[error("Plugin \"{plugin}\" must have a version")]
    VersionMissing { plugin: String },
    #[error("Plugin \"{plugin}\" is already registered")]
    Already { plugin: String },
    #[error("Plugin \"{plugin}\" is not registered")]
    NotRegistered { plugin: String },
    #[error(
        "{owner}Invalid tool name \"{tool}\". Must start with a letter and contain only alphanumeric characters and underscores (max 64 chars)."
    )]
    ToolName { owner: String, tool: String },
    #[error("{owner}Tool \"{tool}\" must have a description")]
    DescriptionMissing { owner: String, tool: String },
    #[error("{owner}Tool \"{tool}\" parameters must be an object schema: {why}")]
    Schema { owner: String, tool: String, why: String },
    #[error("{owner}Tool \"{tool}\" is defined twice")]
    Twice { owner: String, tool: String },
    #[error("{owner}Executor \"{tool}\" has no matching tool definition")]
    ExecutorAlone { owner: String, tool: String },
    #[error("{owner}Tool \"{tool}\" conflicts with tool from plugin \"{other}\"")]
    Conflict { owner: String, tool: String, other: String },
    #[error("Tool \"{tool}\" is already registered")]
    ToolAlready { tool: String },
    #[error("Tool \"{tool}\" is not registered")]
    ToolNotRegistered { tool: String },
    #[error("Plugin \"{plugin}\" requires plugin \"{needs}\", which is not registered")]
    RequiresMissing { plugin: String, needs: String },
    #[error("Plugin \"{plugin}\" requires \"{needs}@{range}\", but version {found} is registered")]
    RequiresVersion { plugin: String, needs: String, range: String, found: String },
    #[error("Plugin \"{plugin}\": \"{text}\" is not name@range")]
    RequiresUnreadable { plugin: String, text: String },
    #[error("Plugins require each other: {}", plugins.join(", "))]
    Cycle { plugins: Vec<String> },
    #[error("Plugin \"{plugin}\" is required by plugin \"{by}\"")]
    RequiredBy { plugin: String, by: String },
    #[error("Plugin \"{plugin}\": {hook} failed: {why}")]
    Hook { plugin: String, hook: &'static str, why: String },
    #[error("No executor for tool: {tool}")]
    NoExecutor { tool: String },
}
