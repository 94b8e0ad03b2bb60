//! Which installed plugins an agent uses: `"time"`, `"time@^1.2"`, or
//! `{"id": "time", "version": "^1.2"}`.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::parse::BadConfig;
use crate::limits;
use crate::manifest::VersionRange;
use crate::name::PluginId;

/// One plugin of an agent. Without a version, the installed one will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written")]
#[ts(as = "Written")]
pub struct PluginUse {
    pub id: PluginId,
    pub version: Option<VersionRange>,
}

/// As people write it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, TS)]
#[serde(untagged)]
enum Written {
    Short(String),
    Long(Named),
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
struct Named {
    id: PluginId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<VersionRange>,
}

impl TryFrom<Written> for PluginUse {
    type Error = String;
    fn try_from(written: Written) -> Result<Self, String> {
        let text = match written {
            Written::Long(Named { id, version }) => return Ok(Self { id, version }),
            Written::Short(text) => text,
        };
        let (id, version) = text.split_once('@').map_or((text.as_str(), None), |(id, v)| (id, Some(v)));
        Ok(Self {
            id: PluginId::parse(id).map_err(|e| e.to_string())?,
            version: version.map(VersionRange::parse).transpose().map_err(|e| e.to_string())?,
        })
    }
}

impl From<PluginUse> for Written {
    fn from(it: PluginUse) -> Self {
        Self::Long(Named { id: it.id, version: it.version })
    }
}

pub(super) fn check(plugins: &[PluginUse]) -> Result<(), BadConfig> {
    let most = limits::AGENT_PLUGINS;
    if plugins.len() > most {
        return Err(BadConfig::at("plugins", format!("at most {most}")));
    }
    let mut seen = HashSet::new();
    match plugins.iter().position(|one| !seen.insert(&one.id)) {
        Some(i) => Err(BadConfig::at(format!("plugins[{i}]"), format!("{} stands twice", plugins[i].id))),
        None => Ok(()),
    }
}
