//! The JSON-RPC binding: one request, its version, and the answers to it.

use serde_json::{Map, Value, json};

use super::command::{Command, Method, command, no_method};
use super::fault::{Fault, FaultKind};
use super::read;
use super::version::{Version, of_method};

/// How answers to one request are wrapped.
#[derive(Debug, Clone, PartialEq)]
pub enum Binding {
    /// With the id of the request.
    JsonRpc(Value),
    /// HTTP+JSON: bare.
    Rest,
}

impl Binding {
    pub fn answer(&self, result: Value) -> Value {
        match self {
            Self::JsonRpc(id) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Self::Rest => result,
        }
    }
    pub fn refusal(&self, fault: &Fault, version: Version) -> Value {
        match self {
            Self::JsonRpc(id) => json!({ "jsonrpc": "2.0", "id": id, "error": fault.rpc(version) }),
            Self::Rest => fault.rest(),
        }
    }
    /// JSON-RPC says what is wrong in the body; its status is always 200.
    pub fn status(&self, fault: &Fault) -> u16 {
        match self {
            Self::JsonRpc(_) => 200,
            Self::Rest => fault.kind.http(),
        }
    }
}

/// A request that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub binding: Binding,
    pub version: Version,
    pub command: Command,
}

/// A request that was not: all that is needed to say so.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub binding: Binding,
    pub version: Version,
    pub fault: Fault,
}

/// Reads a JSON-RPC body. `said` is the version that header or query name.
pub fn rpc_request(body: &[u8], said: Option<&str>) -> Result<Request, Refused> {
    // Whoever does not get as far as a method hears of it as it asked.
    let asked = Version::said(said).unwrap_or(Version::V10);
    let refuse =
        |id: Value, version: Version, fault: Fault| Refused { binding: Binding::JsonRpc(id), version, fault };
    let value = read::json(body).map_err(|fault| refuse(Value::Null, asked, fault))?;
    let (id, name, params) = envelope(&value).map_err(|(id, fault)| refuse(id, asked, fault))?;
    let Some(method) = Method::parse(name) else { return Err(refuse(id, asked, no_method(name))) };
    let version = of_method(name, said).map_err(|fault| refuse(id.clone(), asked, fault))?;
    match command(method, version, params) {
        Ok(command) => Ok(Request { binding: Binding::JsonRpc(id), version, command }),
        Err(fault) => Err(refuse(id, version, fault)),
    }
}

/// Parameters that were left out.
static NOTHING: Value = Value::Null;

fn envelope(value: &Value) -> Result<(Value, &str, &Value), (Value, Fault)> {
    let wrong = |id: Value, text: &str| (id, Fault::new(FaultKind::NoRequest, text));
    let Value::Object(map) = value else {
        return Err(wrong(Value::Null, "The body must be one JSON-RPC request; batches are not taken"));
    };
    let id = request_id(map).ok_or_else(|| wrong(Value::Null, "id must be a text or a whole number"))?;
    if map.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong(id, "jsonrpc must be \"2.0\""));
    }
    match map.get("method") {
        Some(Value::String(name)) if !name.is_empty() => {
            Ok((id, name, map.get("params").unwrap_or(&NOTHING)))
        }
        _ => Err(wrong(id, "method must be a text")),
    }
}

fn request_id(map: &Map<String, Value>) -> Option<Value> {
    match map.get("id") {
        None | Some(Value::Null) => Some(Value::Null),
        Some(id @ Value::String(_)) => Some(id.clone()),
        Some(id @ Value::Number(n)) if n.is_i64() || n.is_u64() => Some(id.clone()),
        Some(_) => None,
    }
}
