//! `toolyard doctor`: looks for trouble and says what to do.

use std::process::ExitCode;

use serde_json::{Value, json};
use toolyard_store::{RedisUrl, Store, StoreError, ask_redis, nodes, runs};

use super::reach::running;
use super::{CliError, Common, local, print};
use crate::config::{AuthMode, Config, Mode};

/// One look: its name, whether it is fine, and a sentence.
struct Finding {
    what: &'static str,
    fine: bool,
    says: String,
}

pub(super) async fn obey(common: &Common, config: &Config) -> Result<ExitCode, CliError> {
    let mut findings = vec![settings(config), agents(config)];
    match running(config) {
        Some(url) => findings.push(Finding {
            what: "gateway",
            fine: true,
            says: format!("runs at {url}; its /ready and /metrics say more"),
        }),
        None => match local::open_kept(config).await {
            Ok(store) => {
                findings.extend(database(&store).await?);
                store.close().await;
            }
            Err(error) => {
                findings.push(Finding { what: "database", fine: false, says: error.to_string() });
            }
        },
    }
    findings.extend(redis(config).await);
    let fine = findings.iter().all(|finding| finding.fine);
    let list: Vec<Value> =
        findings.iter().map(|f| json!({"check": f.what, "ok": f.fine, "says": f.says})).collect();
    print::rows(common.json, &json!({"ok": fine, "checks": list}), "checks", &["check", "ok", "says"]);
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings(config: &Config) -> Finding {
    let says = match (config.mode, config.auth) {
        (Mode::Development, AuthMode::Off) => "development mode, keys off".to_owned(),
        (Mode::Development, AuthMode::Keys) => "development mode".to_owned(),
        (Mode::Production, _) => "production mode".to_owned(),
    };
    match crate::serve::rehearse(config) {
        Ok(()) => Finding { what: "configuration", fine: true, says },
        Err(why) => Finding { what: "configuration", fine: false, says: why.to_string() },
    }
}

fn agents(config: &Config) -> Finding {
    let Ok(entries) = std::fs::read_dir(&config.agents_dir) else {
        let says = format!("there is no folder {}", config.agents_dir.display());
        return Finding { what: "agents", fine: true, says };
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
    Finding { what: "agents", fine: bad.is_empty(), says }
}

/// Redis may be away without harm; who set it wants to know.
async fn redis(config: &Config) -> Option<Finding> {
    let url = RedisUrl::parse(config.redis_url.expose()).ok()?;
    Some(match ask_redis(&url).await {
        Ok(version) => Finding { what: "redis", fine: true, says: format!("Redis {version}") },
        Err(why) => {
            let says = format!("does not answer ({why}); nodes use PostgreSQL's notifications until it does");
            Finding { what: "redis", fine: false, says }
        }
    })
}

async fn database(store: &Store) -> Result<Vec<Finding>, CliError> {
    let (live, counts, poisoned) = store
        .read::<_, StoreError, _>(|tx| {
            Box::pin(async move {
                Ok((nodes::live(tx).await?, runs::counts(tx).await?, runs::poisoned(tx, 20).await?))
            })
        })
        .await?;
    let kind = if store.is_sqlite() { "SQLite" } else { "PostgreSQL" };
    let counts: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    let isolated: Vec<&str> = poisoned.iter().map(|row| row.id.as_str()).collect();
    Ok(vec![
        Finding {
            what: "database",
            fine: true,
            says: format!(
                "{kind}, schema version {}, {} nodes known",
                toolyard_store::known_version(),
                live.len()
            ),
        },
        Finding { what: "runs", fine: true, says: counts },
        Finding {
            what: "isolated runs",
            fine: isolated.is_empty(),
            says: match isolated.as_slice() {
                [] => "none".to_owned(),
                some => format!("{}: look at them with `toolyard run show`", some.join(", ")),
            },
        },
    ])
}
