//! Why a command did not happen: the caller's fault, or the database's.

use toolyard_engine::facts::Refusal;
use toolyard_protocol::{ApiError, ErrorCode};
use toolyard_store::StoreError;

/// Ends a command's transaction without a trace.
#[derive(Debug)]
pub enum Refused {
    Api(ApiError),
    Store(StoreError),
}

impl From<ApiError> for Refused {
    fn from(e: ApiError) -> Self {
        Self::Api(e)
    }
}
impl From<StoreError> for Refused {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}
impl From<Refusal> for Refused {
    fn from(e: Refusal) -> Self {
        Self::Api(e.into())
    }
}

impl From<Refused> for ApiError {
    fn from(e: Refused) -> Self {
        match e {
            Refused::Api(e) => e,
            Refused::Store(e) => store_error(&e),
        }
    }
}

/// What a caller hears of the database's trouble. The cause stays in the log.
pub fn store_error(e: &StoreError) -> ApiError {
    match e {
        StoreError::Unavailable(cause) => {
            tracing::warn!(%cause, "the database does not answer");
            ApiError::new(ErrorCode::StoreUnavailable, "The database does not answer. Try again later")
        }
        StoreError::Full(cause) => {
            tracing::error!(%cause, "the database has no room left");
            ApiError::new(ErrorCode::StoreFull, "The database has no room left. Nothing was changed")
        }
        StoreError::Gone(what) => ApiError::not_found(what),
        StoreError::Exists(_) => ApiError::new(ErrorCode::Conflict, "This exists already"),
        StoreError::Undecodable(cause) => {
            tracing::error!(%cause, "a log cannot be read");
            ApiError::new(ErrorCode::Internal, "This run's log was written by a newer release")
        }
        StoreError::Broken(cause) => {
            tracing::error!(%cause, "the database is broken");
            ApiError::new(ErrorCode::Internal, "Internal error")
        }
    }
}
