//! Where a task's news are pushed to.

use serde_json::{Map, Value, json};
use toolyard_protocol::RunId;

use super::fault::Fault;
use super::fields::Fields;
use super::version::Version;

/// Addresses of one task at most.
pub const PUSH_CONFIGS: usize = 16;
/// Characters of an address, a token or a credential.
pub const PUSH_CHARS: usize = 4_096;

/// One address, as its owner gave it.
#[derive(Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Chosen by the client, or ours.
    pub id: Option<String>,
    pub url: String,
    /// Sent back with each notification, so that the receiver knows it.
    pub token: Option<String>,
    /// What the `Authorization` header says: scheme and credentials.
    pub authorization: Option<(String, String)>,
}

impl std::fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token and the credentials are secrets of the receiver.
        f.debug_struct("PushConfig").field("id", &self.id).field("url", &self.url).finish_non_exhaustive()
    }
}

/// The parameters of "set": flat in 1.0, nested in 0.3.
pub(super) fn read(fields: &Fields<'_>, version: Version, task: &RunId) -> Result<PushConfig, Fault> {
    match version {
        Version::V10 => read_flat(fields),
        Version::V03 => {
            let nested = fields
                .object("pushNotificationConfig")?
                .ok_or_else(|| fields.wrong("pushNotificationConfig", "is required"))?;
            let mut config = read_flat(&nested)?;
            // In 0.3 a task has one address unless the client names more.
            config.id.get_or_insert_with(|| task.to_string());
            Ok(config)
        }
    }
}

pub(super) fn read_flat(fields: &Fields<'_>) -> Result<PushConfig, Fault> {
    let short = |name: &str, text: &str| {
        if text.len() <= PUSH_CHARS && !text.chars().any(char::is_control) {
            return Ok(text.to_owned());
        }
        Err(fields.wrong(name, format!("must have at most {PUSH_CHARS} characters, all of them printable")))
    };
    let url = short("url", fields.need_text("url")?)?;
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return Err(fields.wrong("url", "must be an http or https address"));
    }
    let token = fields.some_text("token")?.map(|t| short("token", t)).transpose()?;
    let authorization = match fields.object("authentication")? {
        None => None,
        Some(given) => {
            let scheme = match given.some_text("scheme")? {
                Some(scheme) => Some(scheme.to_owned()),
                // 0.3 names several; the first one is used.
                None => given.texts("schemes")?.into_iter().next(),
            };
            let credentials = given.some_text("credentials")?.unwrap_or_default();
            match scheme {
                Some(scheme) => {
                    Some((short("authentication", &scheme)?, short("authentication", credentials)?))
                }
                None => return Err(given.wrong("scheme", "is required")),
            }
        }
    };
    let id = fields.some_text("id")?.map(|id| short("id", id)).transpose()?;
    Ok(PushConfig { id, url, token, authorization })
}

/// A configuration as its owner reads it back.
pub fn push_config(task: &RunId, config: &PushConfig, version: Version) -> Value {
    let mut own = Map::new();
    if let Some(id) = &config.id {
        own.insert("id".to_owned(), Value::from(id.as_str()));
    }
    own.insert("url".to_owned(), Value::from(config.url.as_str()));
    if let Some(token) = &config.token {
        own.insert("token".to_owned(), Value::from(token.as_str()));
    }
    if let Some((scheme, credentials)) = &config.authorization {
        let given = match version {
            Version::V10 => json!({ "scheme": scheme, "credentials": credentials }),
            Version::V03 => json!({ "schemes": [scheme], "credentials": credentials }),
        };
        own.insert("authentication".to_owned(), given);
    }
    match version {
        Version::V10 => {
            own.insert("taskId".to_owned(), Value::from(task.as_str()));
            Value::Object(own)
        }
        Version::V03 => json!({ "taskId": task, "pushNotificationConfig": own }),
    }
}

/// All of a task's configurations. 1.0 has pages, of which there is one.
pub fn push_list(task: &RunId, configs: &[PushConfig], version: Version) -> Value {
    let list: Vec<Value> = configs.iter().map(|config| push_config(task, config, version)).collect();
    match version {
        Version::V10 => json!({ "configs": list, "nextPageToken": "" }),
        Version::V03 => Value::Array(list),
    }
}
