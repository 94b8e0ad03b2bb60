//! Tools of the gateway itself (rows G15 to G29). Each is a function inside
//! the transaction that also logs its result: both happen, once, or neither.

use futures::future::BoxFuture;
use serde_json::Value;
use toolyard_protocol::tool::ToolSpec;
use toolyard_store::{StoreError, Tx};

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

/// What an action does. Nothing of it stays if it is refused.
pub type Act =
    for<'t, 'c> fn(&'t mut Tx<'c>, &'t CallContext, &'t Value) -> BoxFuture<'t, Result<Value, Refused>>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    /// As configurations name it.
    pub name: &'static str,
    /// For the model, unless the configuration has its own.
    pub description: &'static str,
    /// The input, unless the configuration has its own.
    pub schema: fn() -> Value,
    pub act: Act,
}

/// All actions, in the order models see them.
pub const ACTIONS: &[Action] = &[];

/// The action of this name.
pub fn find(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|action| action.name == name)
}

/// Fills in what the configuration of a prebuilt tool leaves out (row G16).
pub fn complete(action: &Action, spec: &mut ToolSpec) {
    if spec.description.is_empty() {
        action.description.clone_into(&mut spec.description);
    }
    if spec.input_schema == crate::no_schema() {
        spec.input_schema = (action.schema)();
    }
}
