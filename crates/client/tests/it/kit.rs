//! The sample plugins, and what they must never do.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use toolyard_client::{CallId, Client, Outcome, ToolCall, kit};

async fn run(client: &Client, tool: &str, args: Value) -> Outcome {
    client.execute(&ToolCall::new(CallId::mint(), tool, args)).await.unwrap()
}

fn client() -> Client {
    Client::builder().base_url("http://127.0.0.1:9").build().unwrap()
}

async fn files(root: &Path) -> Client {
    let client = client();
    client.register(kit::filesystem(root).unwrap()).await.unwrap();
    client
}

#[tokio::test]
async fn h45_files_are_read_written_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let client = files(folder.path()).await;
    let written = run(&client, "write_file", json!({"path": "sub/a.txt", "content": "one"})).await;
    assert_eq!(written, Ok(json!({"success": true})));
    assert_eq!(run(&client, "read_file", json!({"path": "./sub/a.txt"})).await, Ok(json!("one")));
    run(&client, "write_file", json!({"path": "sub/a.txt", "content": "two"})).await.unwrap();
    let absolute = folder.path().canonicalize().unwrap().join("sub/a.txt");
    assert_eq!(run(&client, "read_file", json!({"path": absolute})).await, Ok(json!("two")));
    let listed = run(&client, "list_directory", json!({"path": "."})).await.unwrap();
    assert_eq!(listed, json!([{"name": "sub", "type": "directory"}]), "nothing half-written is left");
    let missing = run(&client, "read_file", json!({"path": "nothing.txt"})).await;
    assert_eq!(missing, Err("nothing.txt: does not exist".to_owned()));
    std::fs::write(folder.path().join("big"), vec![b'x'; (1 << 20) + 1]).unwrap();
    let big = run(&client, "read_file", json!({"path": "big"})).await.unwrap_err();
    assert_eq!(big, "big: is larger than 1048576 bytes");
    assert!(kit::filesystem(folder.path().join("nowhere")).is_err());
}

#[tokio::test]
async fn h45_no_path_and_no_link_leads_out_of_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir(root.join("sub")).unwrap();
    symlink(outside.path(), root.join("door")).unwrap();
    symlink(outside.path().join("secret"), root.join("window")).unwrap();
    symlink(outside.path().join("new"), root.join("dangling")).unwrap();
    symlink("sub", root.join("inner")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(fifo.success());
    let client = files(root).await;
    let beside = format!("../{}/secret", outside.path().file_name().unwrap().to_str().unwrap());
    let absolute = outside.path().join("secret").to_string_lossy().into_owned();
    let sneaky = format!("{}/../{beside}", root.canonicalize().unwrap().display());
    for path in [
        "..",
        "../secret",
        &beside,
        &format!("sub/../{beside}"),
        &absolute,
        &sneaky,
        "/etc/passwd",
        "door/secret",
        "door",
        "window",
        "dangling",
        "inner/x",
        "pipe",
        "",
        ".",
        "/",
        "sub",
        "a\0b",
    ] {
        assert!(run(&client, "read_file", json!({"path": path})).await.is_err(), "read {path:?}");
        let written = run(&client, "write_file", json!({"path": path, "content": "x"})).await;
        assert!(written.is_err(), "write {path:?}");
    }
    for path in ["..", "door", "/", "inner", "window"] {
        assert!(run(&client, "list_directory", json!({"path": path})).await.is_err(), "list {path:?}");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "nothing was made outside");
    let told = run(&client, "read_file", json!({"path": "window"})).await.unwrap_err();
    assert_eq!(told, "window: is a symbolic link, which is not followed");
    // A hard link's other name keeps its content: a new file takes its place.
    std::fs::hard_link(outside.path().join("secret"), root.join("hard")).unwrap();
    run(&client, "write_file", json!({"path": "hard", "content": "mine"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn h47_a_database_is_read_and_never_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE t (x INTEGER, s TEXT, b BLOB); INSERT INTO t VALUES (1, 'one', x'00ff'), (2, NULL, NULL); CREATE VIEW v AS SELECT x FROM t;").unwrap();
    let client = client();
    client.register(kit::sqlite(&path).unwrap()).await.unwrap();
    let tables = run(&client, "list_tables", json!({})).await.unwrap();
    assert_eq!(tables, json!([{"name": "t", "type": "table"}, {"name": "v", "type": "view"}]));
    for query in [
        "SELECT x, s, b FROM t ORDER BY x",
        "  -- a comment\n /* and another */ select x, s, b from t order by x;",
        "WITH all_rows AS (SELECT * FROM t) SELECT x, s, b FROM all_rows ORDER BY x;  ",
    ] {
        let rows = run(&client, "sql_query", json!({"query": query})).await.unwrap();
        let wanted =
            json!({"rows": [{"x": 1, "s": "one", "b": "[2 bytes]"}, {"x": 2, "s": null, "b": null}]});
        assert_eq!(rows, wanted, "{query}");
    }
    let other = folder.path().join("other.db");
    let attach = format!("ATTACH '{}' AS o", other.display());
    for query in [
        "INSERT INTO t VALUES (3, 'x', NULL)",
        "UPDATE t SET x = 9",
        "DELETE FROM t",
        "DROP TABLE t",
        "CREATE TABLE u (x)",
        "PRAGMA query_only = off",
        "PRAGMA user_version = 7",
        "VACUUM",
        &attach,
        "BEGIN",
        "SELECT 1; DELETE FROM t",
        "SELECT 1; SELECT 2",
        "WITH w AS (SELECT 1) DELETE FROM t",
        "WITH w AS (SELECT 1) INSERT INTO t SELECT 5, 'x', NULL",
        "/* SELECT */ DELETE FROM t",
        "-- SELECT\nDELETE FROM t",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "",
        "SELECT",
    ] {
        assert!(run(&client, "sql_query", json!({"query": query})).await.is_err(), "{query}");
    }
    let kept: i64 = db.query_row("SELECT sum(x) * 10 + count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 32);
    assert!(!other.exists());
    // Rows have a limit, and it is said.
    let many =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) SELECT i FROM n";
    let rows = run(&client, "sql_query", json!({"query": many})).await.unwrap();
    assert_eq!(
        (rows["rows"].as_array().unwrap().len(), &rows["more"], &rows["limit"]),
        (500, &json!(true), &json!(500))
    );
    assert!(kit::sqlite(folder.path().join("nothing.db")).is_err(), "none is made");
    assert!(!folder.path().join("nothing.db").exists());
    std::fs::write(folder.path().join("text.db"), "this is not a database, by far").unwrap();
    assert!(kit::sqlite(folder.path().join("text.db")).is_err());
}

#[tokio::test]
async fn h41_the_time_is_told_here_and_elsewhere() {
    let client = client();
    client.register(kit::time()).await.unwrap();
    let tokyo = run(&client, "get_time", json!({"timezone": "Asia/Tokyo"})).await.unwrap();
    assert!(tokyo["time"].as_str().unwrap().ends_with("+09:00"), "{tokyo}");
    assert!(run(&client, "get_time", json!({})).await.unwrap()["time"].is_string());
    let unknown = run(&client, "get_time", json!({"timezone": "Moon/Crater"})).await;
    assert_eq!(unknown, Err("unknown time zone: Moon/Crater".to_owned()));
}
