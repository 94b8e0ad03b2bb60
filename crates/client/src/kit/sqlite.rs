//! The plugin `sqlite` (row H47): a database that is only read.
//!
//! Three locks, each of which would do: the file is opened read-only, the
//! connection is switched to `query_only`, and a query is one statement that
//! begins as a question and that SQLite itself says reads only.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, OpenFlags, Statement};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_protocol::limits;

use super::blocking;
use crate::error::ClientError;
use crate::plugin::{PluginBuilder, plugin};
use crate::tool::{CallContext, Failure, tool};

/// What a question begins with.
const QUESTIONS: [&str; 4] = ["select", "with", "values", "explain"];

#[derive(Deserialize)]
struct Query {
    query: String,
}

#[derive(Deserialize)]
struct Nothing {}

/// `sql_query` and `list_tables` of the database at `path`.
pub fn sqlite(path: impl AsRef<Path>) -> Result<PluginBuilder, ClientError> {
    let path = path.as_ref().to_path_buf();
    let shown = path.display().to_string();
    open(&path).map_err(|e| ClientError::settings(format!("the database {shown} cannot be read: {e}")))?;
    let asked = path.clone();
    let sql_query = tool("sql_query")
        .describe("Asks the database one question in SQL and answers the rows. It cannot change anything.")
        .parameters(json!({
            "type": "object",
            "properties": { "query": { "type": "string", "minLength": 1, "description": "One statement that reads." } },
            "required": ["query"],
            "additionalProperties": false,
        }))
        .idempotent()
        .run(move |Query { query }: Query, _cx: CallContext| query_within(asked.clone(), query));
    let list_tables = tool("list_tables")
        .describe("Lists the tables and views of the database.")
        .idempotent()
        .run(move |_: Nothing, _cx: CallContext| {
            let path = path.clone();
            blocking(move || tables(&path))
        });
    Ok(plugin("sqlite", "1.0.0").tool(sql_query).tool(list_tables))
}

#[expect(clippy::disallowed_methods, reason = "the user's own database, which is not the gateway's")]
fn open(path: &Path) -> rusqlite::Result<Connection> {
    // No `SQLITE_OPEN_URI`: a name must not switch the mode.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.busy_timeout(Duration::from_millis(limits::CLIENT_QUERY_MS))?;
    // The file is looked at for the first time here.
    connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
    Ok(connection)
}

async fn query_within(path: PathBuf, query: String) -> Result<Value, Failure> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = blocking(move || {
        let connection = open(&path)?;
        let _ = tell.send(connection.get_interrupt_handle());
        ask(&connection, &query)
    });
    let limit = Duration::from_millis(limits::CLIENT_QUERY_MS);
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(limit, &mut work).await {
        return done;
    }
    if let Ok(handle) = told.await {
        handle.interrupt();
    }
    let _ = work.await;
    Err(format!("the query takes longer than {} ms", limits::CLIENT_QUERY_MS).into())
}

fn ask(connection: &Connection, query: &str) -> Result<Value, Failure> {
    let first = first_word(query).to_ascii_lowercase();
    if !QUESTIONS.contains(&first.as_str()) {
        return Err("only questions are allowed: SELECT, WITH, VALUES or EXPLAIN".into());
    }
    let mut batch = Batch::new(connection, query);
    let mut statement = batch.next()?.ok_or("there is no statement")?;
    if !matches!(batch.next(), Ok(None)) {
        return Err("only one statement is allowed".into());
    }
    if !statement.readonly() {
        return Err("the statement would change the database".into());
    }
    rows(&mut statement)
}

/// The first word after spaces and comments.
fn first_word(query: &str) -> &str {
    let mut rest = query.trim_start();
    loop {
        let next = if let Some(line) = rest.strip_prefix("--") {
            line.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(block) = rest.strip_prefix("/*") {
            block.split_once("*/").map_or("", |(_, after)| after)
        } else {
            break;
        };
        rest = next.trim_start();
    }
    rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default()
}

fn rows(statement: &mut Statement<'_>) -> Result<Value, Failure> {
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let (mut found, mut bytes, mut more) = (Vec::new(), 0, false);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if found.len() >= limits::CLIENT_QUERY_ROWS || bytes > limits::CLIENT_FILE_BYTES {
            more = true;
            break;
        }
        let mut fields = Map::new();
        for (at, name) in names.iter().enumerate() {
            let value = value(row.get_ref(at)?);
            bytes += value.as_str().map_or(8, str::len) as u64;
            fields.insert(name.clone(), value);
        }
        found.push(Value::Object(fields));
    }
    if more {
        let most = limits::CLIENT_QUERY_ROWS;
        return Ok(json!({ "rows": found, "more": true, "limit": most }));
    }
    Ok(json!({ "rows": found }))
}

fn value(field: ValueRef<'_>) -> Value {
    match field {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(blob) => json!(format!("[{} bytes]", blob.len())),
    }
}

fn tables(path: &Path) -> Result<Value, Failure> {
    let connection = open(path)?;
    let mut names = Vec::new();
    connection.pragma_query(None, "table_list", |row| {
        let (name, kind): (String, String) = (row.get("name")?, row.get("type")?);
        if !name.starts_with("sqlite_") && matches!(kind.as_str(), "table" | "view" | "virtual") {
            names.push(json!({ "name": name, "type": kind }));
        }
        Ok(())
    })?;
    names.sort_by_key(|table| table["name"].as_str().unwrap_or_default().to_owned());
    Ok(Value::Array(names))
}
