//! `toolyard serve`: starts the gateway, waits for a stop signal, stops it.
//!
//! Every reason not to start is one sentence. A stop lets work finish for
//! `drain_seconds`; what is left goes back to the queue for the next start.

mod agents_dir;
mod banner;
mod logging;
mod node;
pub(crate) mod outside;
pub(crate) mod presence;
mod providers;
mod signals;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolyard_egress::Door;
use toolyard_plugins::sandbox::{Sandbox, Settings as SandboxSettings};
use toolyard_runtime::{Pictures, Plugins, Registry, Runtime, Secrets, Tasks, Toolbox};
use toolyard_store::{
    DatabaseUrl, OpenError, RedisUrl, Settings as StoreSettings, Store, StoreError, lock_folder,
};

use crate::app::{App, Meter};
use crate::auth::{
    Auth, Cursors, JwtCheck, KeyFileError, Made, OperatorKeys, StartCode, UrlSigner, ensure_keys,
    ensure_master_key,
};
use crate::config::Config;
use crate::http::rate::Rates;
use crate::http::site::Sites;
use crate::http::{listen, meter};
use crate::routes::router::router;

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    #[error("the data folder {folder} cannot be used: {why}")]
    Folder { folder: String, why: std::io::Error },
    #[error("cannot listen on {address}: {why}")]
    Listen { address: SocketAddr, why: std::io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    #[error("the database does not work: {0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Provider(String),
    #[error("log.level: {0}")]
    Log(String),
    #[error("the network cannot be used: {0}")]
    Door(String),
    #[error("smtp: {0}")]
    Mail(String),
    #[error("metrics cannot be counted: {0}")]
    Meter(String),
}

/// Where the store is.
pub(crate) fn store_settings(config: &Config) -> StoreSettings {
    match config.database_url.expose() {
        "" => StoreSettings::Sqlite { folder: config.data.clone() },
        url => StoreSettings::Postgres { url: DatabaseUrl::new(url) },
    }
}

/// What a start would refuse although the file is well written. Touches neither
/// the folder nor the database nor the network.
pub(crate) fn rehearse(config: &Config) -> Result<(), ServeError> {
    logging::filter(&config.log).map_err(ServeError::Log)?;
    providers::open(config).map_err(ServeError::Provider)?;
    Ok(())
}

/// Runs until a stop signal.
pub(crate) async fn serve(config: Config) -> Result<(), ServeError> {
    logging::start(&config.log).map_err(ServeError::Log)?;
    // SQLite locks the folder itself. On PostgreSQL the folder still is this node's name.
    let lock = if config.database_url.is_empty() { None } else { Some(lock_folder(&config.data)?) };
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|why| ServeError::Listen { address: config.listen, why })?;
    let bound = listener.local_addr().map_err(|why| ServeError::Listen { address: config.listen, why })?;
    let store = Arc::new(Store::open(&store_settings(&config)).await?);
    if let Ok(url) = RedisUrl::parse(config.redis_url.expose()) {
        store.go_by_redis(url).await?;
    }
    // Before keys are made: a gateway that does not start must not swallow the one time they are shown.
    let registry = providers::open(&config).map_err(ServeError::Provider)?;
    let made = ensure_keys(&config)?;
    let (start_code, code) = StartCode::mint().map_err(KeyFileError::Random)?;
    let app = assemble(config, bound, store, registry, &made, start_code).await?;
    agents_dir::load_all(&app).await;
    let present = presence::announce(&app.config.data, bound);
    banner::show(&app, bound, &made, &code);
    app.tasks.spawn("agents", agents_dir::watch(app.clone()));

    let accepting =
        listen::accept(listener, router(&app), &app.config.limits, app.tasks.clone(), app.shutdown.clone());
    tokio::select! {
        () = accepting => {}
        () = signals::stop() => tracing::info!("stopping"),
    }
    stop(app).await;
    drop(present);
    drop(lock);
    Ok(())
}

async fn assemble(
    config: Config,
    bound: SocketAddr,
    store: Arc<Store>,
    registry: Registry,
    made: &Made,
    start_code: StartCode,
) -> Result<Arc<App>, ServeError> {
    let settings = node::settings(&config)
        .map_err(|why| ServeError::Folder { folder: config.data.display().to_string(), why })?;
    let meter = Meter(meter::start().map_err(ServeError::Meter)?);
    let sealer = ensure_master_key(&config)?;
    warn_of_closed_secrets(&store, sealer.key_id()).await?;
    let secrets = Secrets::new(store.clone(), sealer.clone(), &config.env.allow);
    let guarded = outside::guarded(&config)?;
    let delivery = outside::delivery(&config, guarded.clone(), sealer.clone())?;
    let public_url = public_url(&config, bound);
    let mut toolbox = Toolbox::default().with_requests(guarded.clone(), secrets.clone());
    // Its processes start with the first call that needs one.
    toolbox.sandbox = Some(Sandbox::new(SandboxSettings::this_program()));
    toolbox.pictures = Some(Pictures { providers: registry.providers().clone(), store: store.clone() });
    let door = Door::operator().map_err(|e| ServeError::Door(e.causes()))?;
    let logins = outside::logins(&public_url, sealer, &store);
    let mcp = outside::mcp(&config, &door, &guarded, &secrets, &store, logins)?;
    toolbox.mcp = Some(mcp.clone());
    let plugins = outside::plugin_rules(&config);
    toolbox.plugins = Some(Plugins { store: store.clone(), rules: plugins.clone(), door: guarded.clone() });
    let runtime = Runtime::start(store.clone(), registry, toolbox, settings).await?;
    runtime.deliver_parcels(delivery);
    if let Some(collector) = outside::collector(&config, &door)? {
        runtime.export_traces(collector);
    }
    let jwt = JwtCheck::new(&config, made.jwt.expose(), &door).map_err(|e| ServeError::Door(e.causes()))?;
    let unusable = KeyFileError::Setting("jwt.secret", "no key can be derived from it");
    let cursors = Cursors::new(made.jwt.expose()).ok_or(unusable)?;
    let operator = OperatorKeys::new(made.secret.expose(), made.public.expose());
    let shutdown = CancellationToken::new();
    Ok(Arc::new(App {
        store,
        runtime,
        auth: Auth::new(&config, operator, jwt),
        secrets,
        guarded,
        mcp,
        // Host and Origin are the edge's to check, for all routes alike.
        mcp_news: crate::routes::ToolNews::default(),
        mcp_clients: toolyard_mcp::server::Server::new(
            toolyard_mcp::server::Sites::Checked,
            shutdown.clone(),
        ),
        public_url,
        plugins,
        signer: UrlSigner::new(made.jwt.expose()),
        cursors,
        start_code,
        rates: Rates::new(&config.limits),
        sites: Sites::new(&config.origins(), bound),
        meter,
        tasks: Tasks::default(),
        shutdown,
        config,
    }))
}

/// The address that people's browsers know the gateway by.
fn public_url(config: &Config, bound: SocketAddr) -> String {
    let said = config.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
    said.unwrap_or_else(|| {
        // Behind every address of the machine there is its own.
        let ip = if bound.ip().is_unspecified() { [127, 0, 0, 1].into() } else { bound.ip() };
        format!("http://{}", SocketAddr::new(ip, bound.port()))
    })
}

/// Where logins at MCP servers come back to.
pub(crate) fn mcp_callback(public_url: &str) -> String {
    format!("{public_url}/api/mcp/callback")
}

/// A lost or another node's master key is better told now than by a tool.
async fn warn_of_closed_secrets(store: &Store, key_id: &str) -> Result<(), StoreError> {
    let id = key_id.to_owned();
    let closed = store
        .read(move |tx| Box::pin(async move { toolyard_store::secrets::closed_by_others(tx, &id).await }))
        .await?;
    if closed > 0 {
        tracing::warn!(
            secrets = closed,
            "some secrets were stored with another master key and cannot be read; set TOOLYARD_MASTER_KEY to the same key on every node"
        );
    }
    Ok(())
}

/// Streams end at once, requests and runs get their time, the rest is handed back.
async fn stop(app: Arc<App>) {
    let drain = Duration::from_secs(app.config.drain_seconds);
    app.shutdown.cancel();
    let (joined, ()) = tokio::join!(app.tasks.join(drain), app.runtime.stop(drain));
    app.mcp.host.stop().await;
    if !joined {
        tracing::warn!("some requests did not end in time");
    }
    // What is committed is on disk already; this only closes the files nicely.
    if let Ok(app) = Arc::try_unwrap(app) {
        let App { store, runtime, .. } = app;
        drop(runtime);
        if let Ok(store) = Arc::try_unwrap(store) {
            store.close().await;
        }
    }
    tracing::info!("stopped");
}
