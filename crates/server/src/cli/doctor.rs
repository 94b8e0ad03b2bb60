//! `toolyard doctor`: looks for trouble and says what to do.

use std::process::ExitCode;

use serde_json::{Value, json};
use toolyard_store::{RedisUrl, ask_redis};

use super::reach::{running, talk};
use super::{CliError, Common, local, print};
use crate::checkup::{self, Finding};
use crate::config::{AuthMode, Config, Mode};

pub(super) async fn obey(common: &Common, config: &Config) -> Result<ExitCode, CliError> {
    let mut list = told(&[settings(config), agents(config)]);
    match common.url.clone().or_else(|| running(config)) {
        Some(url) => list.extend(ask(&url, config).await),
        None => match local::open_kept(config).await {
            Ok(store) => {
                let found = checkup::database(&store).await;
                store.close().await;
                list.extend(told(&found?));
            }
            Err(error) => list.extend(told(&[Finding::new("database", false, error.to_string())])),
        },
    }
    list.extend(told(redis(config).await.as_slice()));
    let fine = list.iter().all(|finding| finding["ok"] == true);
    print::rows(common.json, &json!({"ok": fine, "checks": list}), "checks", &["check", "ok", "says"]);
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn told(findings: &[Finding]) -> Vec<Value> {
    findings.iter().map(|finding| json!(finding)).collect()
}

/// A gateway that runs holds its database, and looks at it itself.
async fn ask(url: &str, config: &Config) -> Vec<Value> {
    let asked = match talk(url, config) {
        Ok(gateway) => gateway.get("/api/doctor", &[]).await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(answer) => {
            let mut list = told(&[Finding::new("gateway", true, format!("runs at {url}"))]);
            list.extend(answer["checks"].as_array().cloned().unwrap_or_default());
            list
        }
        Err(error) => told(&[Finding::new("gateway", false, format!("{url} could not be asked: {error}"))]),
    }
}

fn settings(config: &Config) -> Finding {
    let says = match (config.mode, config.auth) {
        (Mode::Development, AuthMode::Off) => "development mode, keys off".to_owned(),
        (Mode::Development, AuthMode::Keys) => "development mode".to_owned(),
        (Mode::Production, _) => "production mode".to_owned(),
    };
    match crate::serve::rehearse(config) {
        Ok(()) => Finding::new("configuration", true, says),
        Err(why) => Finding::new("configuration", false, why.to_string()),
    }
}

fn agents(config: &Config) -> Finding {
    let Ok(entries) = std::fs::read_dir(&config.agents_dir) else {
        let says = format!("there is no folder {}", config.agents_dir.display());
        return Finding::new("agents", true, says);
    };
    let files = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
    let (mut good, mut bad) = (0, Vec::new());
    for file in files {
        let read = std::fs::read_to_string(&file).map_err(|e| e.to_string());
        let parsed = read.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
        let checked = parsed.and_then(|config| toolyard_runtime::check_agent(&config).map_err(|e| e.message));
        match checked {
            Ok(_) => good += 1,
            Err(why) => bad.push(format!("{}: {why}", file.display())),
        }
    }
    let says = if bad.is_empty() { format!("{good} files, all fine") } else { bad.join("; ") };
    Finding::new("agents", bad.is_empty(), says)
}

/// Redis may be away without harm; who set it wants to know.
async fn redis(config: &Config) -> Option<Finding> {
    let url = RedisUrl::parse(config.redis_url.expose()).ok()?;
    Some(match ask_redis(&url).await {
        Ok(version) => Finding::new("redis", true, format!("Redis {version}")),
        Err(why) => {
            let says = format!("does not answer ({why}); nodes use PostgreSQL's notifications until it does");
            Finding::new("redis", false, says)
        }
    })
}
