//! What a person sees when the gateway has started, and where to go next.

use std::net::SocketAddr;

use super::presence;
use crate::app::App;
use crate::auth::Made;
use crate::config::{AuthMode, LogFormat, Mode};

pub(super) fn show(app: &App, bound: SocketAddr, made: &Made, code: &str) {
    let config = &app.config;
    let url = presence::url(bound);
    let database = if app.store.is_sqlite() { "SQLite" } else { "PostgreSQL" };
    let data = config.data.display();
    tracing::info!(%url, database, version = env!("CARGO_PKG_VERSION"), "listening");
    if config.log.format == LogFormat::Json {
        // Whoever reads JSON reads the line above; only the new key is left to say.
        if made.first {
            println!("secret key (shown once, kept in {data}/keys.json): {}", made.secret.expose());
        }
        return;
    }
    println!("toolyard {} listens on {url}", env!("CARGO_PKG_VERSION"));
    let at_home = app.sites.is_local() && (config.mode == Mode::Development || config.auth == AuthMode::Off);
    if at_home {
        println!("  web app     {url}");
    } else {
        // Behind the hash it reaches no server and no log on the way.
        println!("  web app     {}/#code={code} (opens it once)", app.public_url);
    }
    println!("  data        {data} ({database})");
    println!("  agents      {}", config.agents_dir.display());
    println!("  models      {}", app.runtime.registry().providers().names().collect::<Vec<_>>().join(", "));
    if config.auth == AuthMode::Off {
        println!("  keys        off: every local program may do everything");
        println!("  next        curl {url}/api/agents");
    } else if made.first {
        println!("  keys        made now and kept in {data}/keys.json; the secret key is shown only here");
        println!("  next        export TOOLYARD_SECRET_KEY={}", made.secret.expose());
        println!("              curl -H \"x-secret-key: $TOOLYARD_SECRET_KEY\" {url}/api/agents");
    } else {
        println!("  keys        from the configuration or {data}/keys.json");
        println!("  next        curl -H \"x-secret-key: $TOOLYARD_SECRET_KEY\" {url}/api/agents");
    }
    println!("              {url}/api/openapi.json describes every route");
}
