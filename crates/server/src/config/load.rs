//! File, then variables, then flags, then checks.

use std::path::{Path, PathBuf};

use toml::Value;

use super::check::{self, BadSetting};
use super::env::{self, BadVariable};
use super::lines::Written;
use super::misfits::{misfits, read_table};
use super::section::Config;

/// What the command line says over the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Option<String>,
    pub(crate) data: Option<PathBuf>,
}

/// Why there is no configuration: a sentence for whoever starts the gateway.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{file} cannot be read: {why}")]
    Unreadable { file: String, why: std::io::Error },
    #[error("{file} is not TOML: {why}")]
    NotToml { file: String, why: String },
    #[error("{key}: {why}")]
    Key { key: String, why: String },
    #[error(transparent)]
    Variable(#[from] BadVariable),
    #[error(transparent)]
    Setting(#[from] BadSetting),
    #[error("{file}, line {line}: {error}")]
    Placed { file: String, line: usize, error: Box<ConfigError> },
    #[error("{} settings are wrong:{}", .0.len(), listed(.0))]
    Several(Vec<ConfigError>),
}

fn listed(errors: &[ConfigError]) -> String {
    errors.iter().map(|error| format!("\n  {error}")).collect()
}

impl ConfigError {
    /// The key that it is about, as `limits.burst`.
    fn key(&self) -> Option<&str> {
        match self {
            Self::Key { key, .. } => Some(key),
            Self::Setting(bad) => Some(bad.key),
            Self::Unreadable { .. }
            | Self::NotToml { .. }
            | Self::Variable(_)
            | Self::Placed { .. }
            | Self::Several(_) => None,
        }
    }

    /// About this key, or one within it.
    pub(super) fn is_of(&self, key: &str) -> bool {
        let rest = self.key().and_then(|own| own.strip_prefix(key));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// With the line of its key, unless the key was said over the file.
    fn placed(self, written: Option<&Written>, over: impl Fn(&str) -> bool) -> Self {
        let key = self.key().filter(|key| !over(key));
        match written.zip(key).and_then(|(written, key)| written.place_of(key)) {
            Some((file, line)) => Self::Placed { file, line, error: Box::new(self) },
            None => self,
        }
    }
}

/// The file that is read when nobody names one.
const USUAL: &str = "toolyard.toml";

/// The effective configuration.
pub(crate) fn load(flags: &Flags) -> Result<Config, ConfigError> {
    let config = load_with(flags, |name| std::env::var(name).ok())?;
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    check_names(&config, names)?;
    Ok(config)
}

/// A misspelt variable would leave its key as it was, without a word.
fn check_names(config: &Config, names: impl IntoIterator<Item = String>) -> Result<(), ConfigError> {
    let of_providers = |name: &str| config.providers.values().any(|p| p.api_key_env.as_deref() == Some(name));
    let of_servers = |name: &str| {
        config.mcp_servers.values().any(|server| {
            let secret = server.oauth.as_ref().and_then(|oauth| oauth.client_secret_env_var.as_deref());
            [server.bearer_token_env_var.as_deref(), secret].contains(&Some(name))
        })
    };
    let of_agents = |name: &str| config.env.allow.iter().any(|allowed| allowed == name);
    env::check_names(names, |name| of_providers(name) || of_servers(name) || of_agents(name))?;
    Ok(())
}

fn load_with(flags: &Flags, read: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let named = flags.config.clone().or_else(|| read("TOOLYARD_CONFIG").map(PathBuf::from));
    let written = match named {
        Some(file) => Some(Written::read(&file)?),
        None if Path::new(USUAL).exists() => Some(Written::read(Path::new(USUAL))?),
        None => None,
    };
    let mut table = written.as_ref().map(Written::table).transpose()?.unwrap_or_default();
    env::overlay(&mut table, &read)?;
    if let Some(listen) = &flags.listen {
        table.insert("listen".to_owned(), Value::String(listen.clone()));
    }
    if let Some(data) = &flags.data {
        table.insert("data".to_owned(), Value::String(data.display().to_string()));
    }
    // What somebody said over the file is not a fault of the file.
    let over = |key: &str| {
        let flag = (key == "listen" && flags.listen.is_some()) || (key == "data" && flags.data.is_some());
        flag || env::is_said(key, &read)
    };
    let placed = |error: ConfigError| error.placed(written.as_ref(), over);
    let own_agents = table.contains_key("agents_dir");
    let config = match read_table(table.clone()) {
        Ok(config) => config,
        Err(first) => {
            let all = misfits(&mut Vec::new(), &table).into_iter().map(placed).collect();
            return Err(together(all).unwrap_or_else(|| placed(first)));
        }
    };
    let mut wrong: Vec<ConfigError> = check::check(&config).into_iter().map(ConfigError::from).collect();
    // The usual folder may be missing; one that somebody names is meant to be there.
    if own_agents && !config.agents_dir.is_dir() {
        let why = format!("there is no folder {}", config.agents_dir.display());
        wrong.push(ConfigError::Key { key: "agents_dir".to_owned(), why });
    }
    wrong.extend(mcp_servers(&config, &read).err());
    match together(wrong.into_iter().map(placed).collect()) {
        Some(error) => Err(error),
        None => Ok(config),
    }
}

/// Whoever mends a file wants to hear of all that is wrong, at once.
fn together(mut errors: Vec<ConfigError>) -> Option<ConfigError> {
    errors.sort_by_key(|error| match error {
        ConfigError::Placed { line, .. } => *line,
        _ => 0,
    });
    match errors.len() {
        0 | 1 => errors.pop(),
        _ => Some(ConfigError::Several(errors)),
    }
}

/// The operator's MCP servers, of the file and of the file that it names.
pub(crate) fn mcp_servers(
    config: &Config,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<toolyard_mcp::ServerSettings>, ConfigError> {
    let key = |under: &str, bad: toolyard_mcp::BadServer| ConfigError::Key {
        key: format!("{under}{}", bad.path),
        why: bad.why,
    };
    let mut servers =
        toolyard_mcp::read_entries(&config.mcp_servers, read).map_err(|e| key("mcp_servers.", e))?;
    if let Some(file) = &config.mcp_servers_file {
        let name = || file.display().to_string();
        let text =
            std::fs::read_to_string(file).map_err(|why| ConfigError::Unreadable { file: name(), why })?;
        let more = toolyard_mcp::read_file_form(&text, read)
            .map_err(|e| key(&format!("mcp_servers_file {}: ", name()), e))?;
        for server in more {
            let known = toolyard_protocol::agent::mcp_server_key(server.name.as_str());
            if servers.iter().any(|s| toolyard_protocol::agent::mcp_server_key(s.name.as_str()) == known) {
                let why = format!("{} is in mcp_servers too", server.name);
                return Err(ConfigError::Key { key: "mcp_servers_file".to_owned(), why });
            }
            servers.push(server);
        }
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{Mode, print};

    fn with(variables: &'static [(&'static str, &'static str)]) -> Result<Config, ConfigError> {
        let read = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        load_with(&Flags::default(), read)
    }

    #[test]
    fn defaults_are_local_development() {
        let config = with(&[]).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8787");
        assert_eq!(config.mode, Mode::Development);
        assert!(config.auto_entities());
        assert_eq!(config.origins().len(), 2);
    }

    #[test]
    fn variables_win_over_defaults_and_flags_over_variables() {
        let read = |name: &str| (name == "TOOLYARD_LISTEN").then(|| "127.0.0.1:1".to_owned());
        let flags = Flags { listen: Some("127.0.0.1:2".to_owned()), ..Flags::default() };
        assert_eq!(load_with(&Flags::default(), read).unwrap().listen.port(), 1);
        assert_eq!(load_with(&flags, read).unwrap().listen.port(), 2);
    }

    #[test]
    fn a_variable_that_looks_like_ours_and_is_not_is_refused() {
        let config = with(&[("TOOLYARD_ENV_ALLOW", "TOOLYARD_OF_AN_AGENT")]).unwrap();
        let check = |name: &str| check_names(&config, [name.to_owned()]).map_err(|e| e.to_string());
        for fine in ["TOOLYARD_LISTEN", "TOOLYARD_CONFIG", "TOOLYARD_OF_AN_AGENT", "HOME", "MY_TOOLYARD_X"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        let refused = check("TOOLYARD_LOGLEVEL").unwrap_err();
        assert_eq!(refused, "TOOLYARD_LOGLEVEL is not a variable of this program");
    }

    #[test]
    fn auth_off_is_refused_unless_bound_to_loopback() {
        let off = with(&[("TOOLYARD_AUTH", "off"), ("TOOLYARD_LISTEN", "0.0.0.0:8787")]);
        assert!(off.unwrap_err().to_string().contains("loopback"));
        assert!(with(&[("TOOLYARD_AUTH", "off")]).is_ok());
        assert!(with(&[("TOOLYARD_AUTH", "off"), ("TOOLYARD_MODE", "production")]).is_err());
    }

    #[test]
    fn mcp_servers_come_from_the_file_and_from_the_form_of_other_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let (config, json) = (folder.path().join("t.toml"), folder.path().join("mcp.json"));
        let load_it = |toml: &str, form: &str| {
            std::fs::write(&config, toml).unwrap();
            std::fs::write(&json, form).unwrap();
            let flags = Flags { config: Some(config.clone()), ..Flags::default() };
            let read = |name: &str| match name {
                "TOOLYARD_MCP_SERVERS_FILE" => Some(json.display().to_string()),
                "TOKEN" => Some("canary-token".to_owned()),
                _ => None,
            };
            let config = load_with(&flags, read)?;
            let servers = mcp_servers(&config, &read)?;
            Ok::<_, ConfigError>((print(&config), servers))
        };
        let toml = "[mcp_servers.files]\ncommand = \"mcp-server-filesystem\"\nargs = [\"/data\"]\n[mcp_servers.files.env]\nKEY = \"canary-value\"\n";
        let form = r#"{"mcpServers":{"web":{"url":"https://example.com/mcp","headers":{"Key":"${TOKEN}"}}}}"#;
        let (shown, servers) = load_it(toml, form).unwrap();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["files", "web"]);
        assert!(!format!("{shown} {servers:?}").contains("canary"), "{shown}");
        let twice = load_it(toml, &form.replace("web", "Files")).unwrap_err().to_string();
        assert_eq!(twice, "mcp_servers_file: Files is in mcp_servers too");
        let bad = load_it("[mcp_servers.files]\nargs = []\n", form).unwrap_err().to_string();
        let at = |line: usize| format!("{}, line {line}: ", config.display());
        assert_eq!(bad, at(1) + "mcp_servers.files.command: is required, or url");
        let misspelt = load_it("[mcp_servers.files]\ncomand = \"a\"\n", form).unwrap_err().to_string();
        assert!(misspelt.starts_with(&(at(2) + "mcp_servers.files.comand: unknown field")), "{misspelt}");
    }

    #[test]
    fn x9_the_keys_of_an_issuer_come_by_https_or_from_this_machine() {
        let with_url = |url: &'static str| {
            let read = move |name: &str| (name == "TOOLYARD_JWT_JWKS_URL").then(|| url.to_owned());
            load_with(&Flags::default(), read)
        };
        for fine in ["https://issuer.example/jwks", "http://127.0.0.1:9/jwks", "http://[::1]/jwks"] {
            assert!(with_url(fine).is_ok(), "{fine}");
        }
        for bad in ["http://issuer.example/jwks", "file:///keys", "issuer.example", ""] {
            let said = with_url(bad).unwrap_err().to_string();
            assert!(said.starts_with("jwt.jwks_url: "), "{bad}: {said}");
        }
    }

    #[test]
    fn print_hides_every_secret() {
        let config = with(&[
            ("TOOLYARD_SECRET_KEY", "canary-secret-key"),
            ("TOOLYARD_PUBLIC_KEY", "canary-public-key"),
            ("TOOLYARD_JWT_SECRET", "canary-jwt-secret-of-32-characters"),
            ("TOOLYARD_DATABASE_URL", "postgres://u:canary@h/d"),
            ("TOOLYARD_MASTER_KEY", "canary-master-key"),
        ])
        .unwrap();
        let shown = format!("{} {config:?}", print(&config));
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains("(hidden)"));
    }
}
