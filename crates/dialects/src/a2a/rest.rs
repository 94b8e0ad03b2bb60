//! The HTTP+JSON binding: method and path are the operation, the rest is in
//! the body or the query.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::command::{Method, command, no_method};
use super::fault::{Fault, FaultKind};
use super::read;
use super::rpc::{Binding, Refused, Request};
use super::version::{Version, of_path};

/// A request of this binding, before it is read.
#[derive(Debug, Clone, Copy)]
pub struct Rest<'r> {
    /// `GET`, `POST` or `DELETE`.
    pub verb: &'r str,
    /// What follows the agent's address and the prefix, without a leading slash.
    pub path: &'r str,
    /// There was a prefix `/v1`, as 0.3 has it.
    pub prefixed: bool,
    pub query: &'r HashMap<String, String>,
    pub body: &'r [u8],
    /// The version that header or query name.
    pub said: Option<&'r str>,
}

/// Is this path an operation of the binding?
pub fn is_rest(verb: &str, path: &str) -> bool {
    operation(verb, path).is_some()
}

/// An operation, and what the path says of its parameters.
fn operation(verb: &str, path: &str) -> Option<(Method, Vec<(&'static str, String)>)> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let named = |name, value: &str| vec![(name, value.to_owned())];
    Some(match (verb, segments.as_slice()) {
        ("POST", ["message:send"]) => (Method::Send, vec![]),
        ("POST", ["message:stream"]) => (Method::Stream, vec![]),
        ("GET", ["tasks"]) => (Method::List, vec![]),
        ("GET", ["extendedAgentCard" | "card"]) => (Method::ExtendedCard, vec![]),
        ("POST", ["tasks", id, "pushNotificationConfigs"]) => (Method::SetPush, named("taskId", id)),
        ("GET", ["tasks", id, "pushNotificationConfigs"]) => (Method::ListPush, named("taskId", id)),
        ("GET", ["tasks", id, "pushNotificationConfigs", config]) => {
            (Method::GetPush, vec![("taskId", (*id).to_owned()), ("id", (*config).to_owned())])
        }
        ("DELETE", ["tasks", id, "pushNotificationConfigs", config]) => {
            (Method::DeletePush, vec![("taskId", (*id).to_owned()), ("id", (*config).to_owned())])
        }
        (_, ["tasks", last]) => match (verb, last.rsplit_once(':')) {
            ("POST", Some((id, "cancel"))) => (Method::Cancel, named("id", id)),
            // The two texts of the specification differ, so both verbs are served.
            ("GET" | "POST", Some((id, "subscribe"))) => (Method::Subscribe, named("id", id)),
            ("GET", _) => (Method::Get, named("id", last)),
            _ => return None,
        },
        _ => return None,
    })
}

pub fn rest_request(given: Rest<'_>) -> Result<Request, Refused> {
    let asked = Version::said(given.said).unwrap_or(Version::V10);
    let refuse = |version: Version, fault: Fault| Refused { binding: Binding::Rest, version, fault };
    let Some((method, named)) = operation(given.verb, given.path) else {
        return Err(refuse(asked, no_method(&format!("{} /{}", given.verb, given.path))));
    };
    let version = of_path(given.prefixed, given.path, given.said).map_err(|fault| refuse(asked, fault))?;
    let params = params(given, method, version, named).map_err(|fault| refuse(version, fault))?;
    match command(method, version, &params) {
        Ok(command) => Ok(Request { binding: Binding::Rest, version, command }),
        Err(fault) => Err(refuse(version, fault)),
    }
}

fn params(
    given: Rest<'_>,
    method: Method,
    version: Version,
    named: Vec<(&'static str, String)>,
) -> Result<Value, Fault> {
    let mut map = match given.verb {
        "POST" if !given.body.is_empty() => match read::json(given.body)? {
            Value::Object(map) => map,
            _ => return Err(Fault::new(FaultKind::NoRequest, "The body must be a JSON object")),
        },
        _ => from_query(given.query),
    };
    for (name, value) in named {
        // 0.3 calls them otherwise in its own parameters.
        let name = match (version, method, name) {
            (Version::V03, Method::GetPush | Method::ListPush | Method::DeletePush, "taskId") => "id",
            (Version::V03, Method::GetPush | Method::DeletePush, "id") => "pushNotificationConfigId",
            _ => name,
        };
        map.insert(name.to_owned(), Value::from(value));
    }
    Ok(Value::Object(map))
}

/// A query as parameters: flags are flags, everything else is text.
fn from_query(query: &HashMap<String, String>) -> Map<String, Value> {
    let value = |text: &String| match text.as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => Value::from(text),
    };
    query.iter().map(|(name, text)| (name.clone(), value(text))).collect()
}
