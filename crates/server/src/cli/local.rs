//! The database itself, when no gateway runs.

use toolyard_store::Store;

use super::CliError;
use super::reach::listens;
use crate::config::Config;
use crate::serve::{presence, store_settings};

/// Opens the database, and makes it if there is none.
pub(super) async fn open(config: &Config) -> Result<Store, CliError> {
    Ok(Store::open(&store_settings(config)).await?)
}

/// Opens the database that is there. Who only looks leaves no folder behind.
pub(super) async fn open_kept(config: &Config) -> Result<Store, CliError> {
    check_kept(config)?;
    open(config).await
}

/// Refuses a data folder without a database: where a gateway may be instead,
/// and what to do. PostgreSQL is elsewhere and says so itself.
pub(super) fn check_kept(config: &Config) -> Result<(), CliError> {
    if !config.database_url.is_empty() || toolyard_store::is_kept(&config.data) {
        return Ok(());
    }
    let (data, url) = (config.data.display(), presence::url(config.listen));
    let address = presence::reachable(config.listen);
    let said = if address.port() == 0 {
        format!(
            "no gateway runs here, and there is no data in {data}: start one with `toolyard serve`, or name another with --url or --data"
        )
    } else if listens(&address) {
        format!(
            "there is no data in {data}, and whatever listens at {url} keeps its own elsewhere: name its folder with --data, or the gateway with --url"
        )
    } else {
        format!(
            "no gateway runs at {url}, and there is no data in {data}: start one with `toolyard serve`, or name another with --url or --data"
        )
    };
    Err(CliError::said(said))
}
