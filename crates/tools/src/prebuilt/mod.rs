//! Tools of the gateway itself (rows G15 to G29). Each is a function inside
//! the transaction that also logs its result: both happen, once, or neither.
//!
//! An action knows who calls: an agent, for somebody, in a space. It reads and
//! writes only what these three may, never what the agent once saw elsewhere.

mod goals;
mod inputs;
mod knowledge;
mod memories;
mod notices;
pub mod plans;
mod results;
mod space;

pub use inputs::{answered, asked};
pub use results::{READ_RESULT, Results};

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_protocol::agent::execution::{Execution, Prebuilt};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{IfAbsent, Place, ToolSpec, Toolset, Visibility};
use toolyard_protocol::{EntityId, SpaceId, ToolName};
use toolyard_store::{StoreError, Tx, spaces};

use crate::CallContext;

/// Why an action changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The model hears it and goes on.
    #[error("{0}")]
    TellModel(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Refused {
    fn tell(text: impl Into<String>) -> Self {
        Self::TellModel(text.into())
    }
}

/// What an action gets beside its caller.
#[derive(Debug, Clone)]
pub struct Given {
    pub args: std::sync::Arc<Value>,
    /// The `execution` of the tool's configuration.
    pub options: Prebuilt,
}

impl Given {
    /// The input as the action's own type.
    fn input<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        T::deserialize(&*self.args).map_err(|e| Refused::tell(format!("Invalid input: {e}")))
    }
}

/// What an action does. Nothing of it stays if it is refused.
pub type Act =
    for<'t, 'c> fn(&'t mut Tx<'c>, &'t CallContext, &'t Given) -> BoxFuture<'t, Result<Value, Refused>>;

/// How a call of an action comes to its end.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// In the transaction of its result.
    Act(Act),
    /// Beforehand, by the toolbox: it may take its time and changes nothing.
    Read,
    /// A person answers it.
    AskUser,
}

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    /// As configurations name it.
    pub name: &'static str,
    /// Another name that configurations may use.
    pub alias: Option<&'static str>,
    /// For the model, unless the configuration has its own.
    pub description: &'static str,
    /// The input, unless the configuration has its own.
    pub schema: fn() -> Value,
    pub way: Way,
}

/// All actions, in the order models see them.
pub const ACTIONS: &[Action] = &[
    goals::SET,
    goals::GET,
    memories::SET,
    memories::GET,
    plans::CREATE,
    plans::GET,
    plans::CANCEL,
    knowledge::SEARCH,
    notices::SEND,
    space::CONTEXT,
    space::UPDATE,
    inputs::REQUEST,
    results::READ,
];

/// The action of this name.
pub fn find(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|action| action.name == name || action.alias == Some(name))
}

/// Fills in what the configuration of a prebuilt tool leaves out (row G16).
pub fn complete(action: &Action, spec: &mut ToolSpec, has_schema: bool) {
    if spec.description.is_empty() {
        action.description.clone_into(&mut spec.description);
    }
    if !has_schema {
        spec.input_schema = (action.schema)();
    }
    // What it reads may be a private tool's: nobody makes that public by the way.
    if action.name == READ_RESULT {
        spec.visibility = Visibility::Private;
    }
}

/// Adds every action that the tools do not have yet (`prebuilt: "all"`).
pub fn add_all(set: &mut Toolset) -> Result<(), String> {
    for action in ACTIONS {
        let has = |spec: &ToolSpec| match &spec.execution {
            Execution::Prebuilt(prebuilt) => find(&prebuilt.action).is_some_and(|a| a.name == action.name),
            _ => false,
        };
        if set.0.iter().any(has) {
            continue;
        }
        if set.find(action.name).is_some() {
            return Err(format!("another tool has the name {} of a prebuilt tool", action.name));
        }
        set.0.push(spec(action)?);
    }
    Ok(())
}

/// An action as a tool without any configuration.
fn spec(action: &Action) -> Result<ToolSpec, String> {
    Ok(ToolSpec {
        name: ToolName::parse(action.name).map_err(|e| e.to_string())?,
        description: action.description.to_owned(),
        input_schema: (action.schema)(),
        execution: Execution::Prebuilt(Prebuilt { action: action.name.to_owned(), channels: None }),
        place: Place::Gateway,
        risk: Risk::of_name(action.name),
        visibility: Visibility::Private,
        approval: None,
        answerers: None,
        timeout_ms: None,
        expires_ms: None,
        if_absent: IfAbsent::Wait,
        idempotent: false,
        trusted: false,
        service_id: None,
        deprecated: None,
        category: None,
        version: None,
        brought: None,
    })
}

/// The agent's own entity: without one there is nobody to keep anything for.
fn agent(caller: &CallContext) -> Result<&EntityId, Refused> {
    let text = "This run has no agent entity, so there is nobody to keep this for";
    caller.agent_entity.as_ref().ok_or_else(|| Refused::tell(text))
}

/// The space of the run, as long as its agent, and whom it works for, have a
/// seat there: who has left reads nothing of it any more.
pub(crate) async fn seat(tx: &mut Tx<'_>, caller: &CallContext) -> Result<Option<SpaceId>, StoreError> {
    let (Some(space), Some(agent)) = (&caller.space, &caller.agent_entity) else { return Ok(None) };
    for entity in std::iter::once(agent).chain(caller.trigger.as_ref()) {
        if spaces::role(tx, &caller.tenant, space, entity).await?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(space.clone()))
}

/// A text of the input: not empty, not longer than `most` characters.
fn text<'t>(name: &str, text: &'t str, most: usize) -> Result<&'t str, Refused> {
    let text = text.trim();
    // PostgreSQL keeps no NUL.
    if text.is_empty() || text.contains('\0') {
        return Err(Refused::tell(format!("{name} must not be empty")));
    }
    let count = text.chars().count();
    if count > most {
        return Err(Refused::tell(format!("{name} has {count} characters: the limit is {most}")));
    }
    Ok(text)
}
