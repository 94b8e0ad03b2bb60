//! The database itself, when no gateway runs.

use toolyard_store::Store;

use super::CliError;
use crate::config::Config;
use crate::serve::store_settings;

pub(super) async fn open(config: &Config) -> Result<Store, CliError> {
    Ok(Store::open(&store_settings(config)).await?)
}
