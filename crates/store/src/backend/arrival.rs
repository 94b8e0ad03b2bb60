//! The first connection to PostgreSQL. A server may start beside the gateway,
//! so it is tried for some seconds; then it is said where it was looked for
//! and what to do. The URL holds a password and is never part of a message.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Error};

use crate::error::OpenError;

/// How long a start waits for the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// What a URL says.
pub(super) fn options(url: &str) -> Result<PgConnectOptions, OpenError> {
    url.parse().map_err(|e: Error| OpenError::Database {
        what: "of database_url".to_owned(),
        why: format!(
            "{}. Write it as postgres://user:password@host:5432/database, with %XX for special characters of the password",
            words(&e)
        ),
    })
}

/// Waits until the server lets this user into this database.
pub(super) async fn wait(options: &PgConnectOptions) -> Result<(), OpenError> {
    let (mut tries, mut last) = (0_u32, None);
    let trying = async {
        loop {
            tries += 1;
            match PgConnection::connect_with(options).await {
                Ok(connection) => {
                    // It has answered; how it says goodbye is no matter.
                    let _ = connection.close().await;
                    return Ok(());
                }
                Err(e) if !may_pass(&e) => return Err(e),
                Err(e) => {
                    if last.is_none() {
                        tracing::debug!(
                            at = place(options),
                            why = words(&e),
                            "PostgreSQL does not answer yet"
                        );
                    }
                    last = Some(e);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, trying).await;
    let seconds = PATIENCE.as_secs();
    let (why, advice) = match (ended, last) {
        (Ok(Ok(())), _) => return Ok(()),
        (Ok(Err(e)), _) => refusal(options, &e),
        (Err(_), Some(e)) => (
            format!("cannot be reached: {} (tried {tries} times in {seconds} seconds)", words(&e)),
            "Start it, or mend host and port of database_url".to_owned(),
        ),
        (Err(_), None) => (
            format!("takes no word of a new connection (waited {seconds} seconds)"),
            "Look whether it is well and in reach, or mend host and port of database_url".to_owned(),
        ),
    };
    Err(OpenError::Postgres { place: place(options), why, advice })
}

/// What time may mend: nobody listens yet, its name is not known yet, it is
/// starting, or all its connections are taken.
fn may_pass(e: &Error) -> bool {
    match e {
        Error::Io(_) => true,
        Error::Database(db) => matches!(db.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

fn refusal(options: &PgConnectOptions, e: &Error) -> (String, String) {
    let code = e.as_database_error().and_then(|db| db.code().map(|code| code.into_owned()));
    let (user, said) = (options.get_username(), words(e));
    match code.as_deref() {
        Some(code) if code.starts_with("28") => {
            (format!("refuses the user {user}: {said}"), "Mend user and password of database_url".to_owned())
        }
        Some("3D000") => {
            let name = database(options);
            (
                format!("has no such database: {said}"),
                format!("Make it (createdb {name}), or mend database_url"),
            )
        }
        _ => (format!("cannot be used: {said}"), "Mend database_url".to_owned()),
    }
}

/// Host, port and database.
fn place(options: &PgConnectOptions) -> String {
    let name = database(options);
    match options.get_socket() {
        Some(folder) => format!("{}, port {} (database {name})", folder.display(), options.get_port()),
        None => format!("{}:{} (database {name})", options.get_host(), options.get_port()),
    }
}

/// Who names none gets the one of the user's name.
fn database(options: &PgConnectOptions) -> &str {
    options.get_database().unwrap_or_else(|| options.get_username())
}

/// The cause alone, without the library's words around it.
fn words(e: &Error) -> String {
    match e {
        Error::Io(e) => e.to_string(),
        Error::Database(db) => db.message().to_owned(),
        Error::Configuration(e) => e.to_string(),
        other => other.to_string(),
    }
}
