//! The data folder: who may open it, and what is said when it cannot be.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toolyard_store::{OpenError, Settings, Store, known_version};

use crate::home::Home;

async fn refusal(folder: &Path) -> OpenError {
    let settings = Settings::Sqlite { folder: folder.to_owned() };
    match Store::open(&settings).await {
        Ok(_) => panic!("{} was opened", folder.display()),
        Err(e) => e,
    }
}

fn folder_of(home: &Home) -> &Path {
    match &home.settings {
        Settings::Sqlite { folder } => folder,
        Settings::Postgres { .. } => panic!("a database instead of a folder"),
    }
}

#[expect(clippy::disallowed_methods, reason = "a look at the file from outside")]
fn raw(folder: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(folder.join("toolyard.db")).unwrap()
}

#[tokio::test]
async fn a_folder_is_open_in_one_gateway_at_a_time() {
    let home = Home::on_sqlite().await;
    let folder = folder_of(&home).to_owned();
    let refused = refusal(&folder).await;
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused:?}");
    let told = refused.to_string();
    assert!(told.contains("in use by another gateway") && told.contains("data"), "{told}");
    // Closed means free.
    home.reopened().await.end().await;
}

#[tokio::test]
async fn a_missing_folder_is_made_and_a_file_in_its_way_is_told() {
    let place = tempfile::tempdir().unwrap();
    let deep = place.path().join("a/b/c");
    let settings = Settings::Sqlite { folder: deep.clone() };
    Store::open(&settings).await.unwrap().close().await;
    assert!(deep.join("toolyard.db").is_file());

    let file = place.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let refused = refusal(&file.join("data")).await;
    assert!(matches!(refused, OpenError::Folder { .. }), "{refused:?}");
    assert!(refused.to_string().contains("file/data"), "{refused}");
}

#[tokio::test]
async fn a_read_only_folder_is_told() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("data");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    // An administrator may write there all the same; /proc takes no files from anybody.
    let is_free = fs::write(folder.join("probe"), "").is_ok();
    let folder = if is_free { Path::new("/proc") } else { &folder };
    let refused = refusal(folder).await;
    assert!(matches!(refused, OpenError::Folder { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_database_that_is_none_is_told() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("toolyard.db"), "no database ".repeat(1000)).unwrap();
    let refused = refusal(place.path()).await;
    assert!(matches!(refused, OpenError::Database { .. }), "{refused:?}");
    assert!(refused.to_string().contains("toolyard.db"), "{refused}");
    // The failed attempt holds no lock.
    fs::remove_file(place.path().join("toolyard.db")).unwrap();
    let settings = Settings::Sqlite { folder: place.path().to_owned() };
    Store::open(&settings).await.unwrap().close().await;
}

#[tokio::test]
async fn a_database_of_a_later_release_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let settings = Settings::Sqlite { folder: place.path().to_owned() };
    Store::open(&settings).await.unwrap().close().await;
    let version = || -> i64 { raw(place.path()).query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap() };
    let known = known_version();
    assert_eq!(version(), known);

    raw(place.path()).pragma_update(None, "user_version", known + 1).unwrap();
    let refused = refusal(place.path()).await;
    let OpenError::TooNew { found, known: told } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((found, told), (known + 1, known));
    assert_eq!(version(), known + 1, "nothing was changed");

    raw(place.path()).pragma_update(None, "user_version", known).unwrap();
    Store::open(&settings).await.unwrap().close().await;
}
