//! Everything that is stored of one entity, row by row, for a person who asks
//! for it. Sealed bytes and states of logins are not told: they open doors.

use serde_json::{Map, Value};
use toolyard_protocol::{EntityId, RunId, TenantId, limits};

use crate::error::StoreError;
use crate::log;
use crate::tx::{Row, Tx, args};

/// A column as JSON.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    Int,
    /// Text that is JSON already.
    Json,
}

/// A table that names entities.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    /// The columns that name them.
    pub naming: &'static [&'static str],
    /// Rows behind a key, in its order. The first column is the key.
    sql: &'static str,
    columns: &'static [(&'static str, Form)],
}

/// A page of one table. `$3` is the last key of the page before, `$4` its size.
macro_rules! table {
    ($name:literal, by [$first:literal $(, $other:literal)*], key $key:literal, { $($column:ident : $form:ident),* $(,)? }) => {
        Table {
            name: $name,
            naming: &[$first $(, $other)*],
            sql: concat!(
                "SELECT ", $key $(, ", ", stringify!($column))*, " FROM ", $name, " WHERE tenant = $1 AND (",
                $first, " = $2" $(, " OR ", $other, " = $2")*, ") AND ", $key, " > $3 ORDER BY ", $key, " LIMIT $4"
            ),
            columns: &[$((stringify!($column), Form::$form)),*],
        }
    };
}

/// Every table that names entities, in the order of the export.
pub const TABLES: &[Table] = &[
    table!("entities", by ["id"], key "id", { id: Text, kind: Text, external_id: Text, display_name: Text, agent: Text, metadata: Json, created_at: Int }),
    table!("members", by ["entity"], key "space", { space: Text, role: Text, picks: Json, created_at: Int }),
    table!("spaces", by ["owner"], key "id", { id: Text, name: Text, description: Text, metadata: Json, foreign_id: Text, created_at: Int }),
    table!("messages", by ["entity"], key "id", { id: Text, space: Text, pos: Int, speaker: Text, run: Text, branch: Text, parts: Json, metadata: Json, created_at: Int }),
    table!("runs", by ["triggered_by", "agent_entity"], key "id", { id: Text, space: Text, agent: Text, agent_entity: Text, triggered_by: Text, root: Text, parent: Text, status: Text, error: Text, created_at: Int, updated_at: Int }),
    table!("compactions", by ["agent_entity"], key "(space || '/' || branch || '/' || up_to)", { space: Text, branch: Text, up_to: Int, summary: Text, run: Text }),
    table!("files", by ["entity"], key "id", { id: Text, hash: Text, media_type: Text, name: Text, bytes: Int, run: Text, space: Text, created_at: Int }),
    table!("grants", by ["entity"], key "id", { id: Text, tool: Text, body: Json, created_at: Int, expires_at: Int }),
    table!("goals", by ["entity"], key "id", { id: Text, description: Text, priority: Int, long_term: Int, completed: Int, metadata: Json, created_at: Int, updated_at: Int }),
    table!("memories", by ["writer", "agent"], key "id", { id: Text, agent: Text, writer: Text, space: Text, scope: Text, topic: Text, content: Text, created_at: Int, updated_at: Int }),
    table!("plans", by ["creator", "agent"], key "id", { id: Text, agent: Text, creator: Text, space: Text, name: Text, instruction: Text, cron: Text, timezone: Text, scheduled_at: Int, next_run_at: Int, last_run_at: Int, last_run: Text, runs: Int, status: Text, error: Text, created_at: Int, updated_at: Int }),
    table!("inbox", by ["entity", "agent"], key "id", { id: Text, entity: Text, title: Text, body: Text, level: Text, data: Json, agent: Text, space: Text, run: Text, read_at: Int, created_at: Int }),
    table!("documents", by ["entity"], key "id", { id: Text, space: Text, title: Text, media_type: Text, bytes: Int, status: Text, created_at: Int, updated_at: Int }),
    table!("clients", by ["entity"], key "id", { id: Text, kind: Text, name: Text, capabilities: Json, last_seen: Int }),
    table!("presences", by ["entity"], key "connection", { connection: Text, client: Text, node: Text, at: Int }),
    table!("push_configs", by ["owner"], key "(run || '/' || id)", { run: Text, id: Text, url: Text, version: Text, created_at: Int }),
    table!("mcp_records", by ["entity"], key "(server || '/' || record)", { server: Text, record: Text, expires_at: Int, at: Int }),
    table!("mcp_logins", by ["entity"], key "state", { server: Text, expires_at: Int }),
    table!("mcp_locks", by ["entity"], key "server", { server: Text, until: Int }),
];

/// Where an export goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    table: usize,
    key: String,
    /// Runs of the page whose events follow, and the position in the first.
    runs: Vec<RunId>,
    seq: i64,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub table: &'static str,
    pub row: Value,
}

/// The next rows, and where to go on; none at the end.
pub async fn page(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: &EntityId,
    mut place: Place,
) -> Result<(Vec<Line>, Option<Place>), StoreError> {
    if let Some(run) = place.runs.first().cloned() {
        let logged = match log::read(tx, tenant, &run, place.seq, limits::PAGE).await {
            // One log that cannot be read keeps nobody from the rest.
            Err(StoreError::Undecodable(why)) => {
                place.runs.remove(0);
                place.seq = 0;
                let row = serde_json::json!({"run": run, "unreadable": why.to_string()});
                return Ok((vec![Line { table: "events", row }], Some(place)));
            }
            logged => logged?,
        };
        place.seq = logged.last().map_or(0, |last| last.seq);
        if logged.len() < limits::PAGE as usize {
            place.runs.remove(0);
            place.seq = 0;
        }
        let event = |one: log::Logged| {
            let body: Value = serde_json::from_str(&one.event.encode()).unwrap_or_default();
            let row = serde_json::json!({"run": run, "seq": one.seq, "at": one.at.millis(), "event": body});
            Line { table: "events", row }
        };
        return Ok((logged.into_iter().map(event).collect(), Some(place)));
    }
    let Some(table) = TABLES.get(place.table) else { return Ok((Vec::new(), None)) };
    let rows = tx
        .all(table.sql, args![tenant.as_str(), entity.as_str(), &place.key, i64::from(limits::PAGE)], |r| {
            Ok((r.text(0)?, row(r, table.columns)?))
        })
        .await?;
    match rows.last() {
        Some((last, _)) if rows.len() == limits::PAGE as usize => place.key.clone_from(last),
        _ => (place.table, place.key) = (place.table + 1, String::new()),
    }
    if table.name == "runs" {
        place.runs = rows.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect();
    }
    Ok((rows.into_iter().map(|(_, row)| Line { table: table.name, row }).collect(), Some(place)))
}

fn row(r: &Row<'_>, columns: &[(&'static str, Form)]) -> Result<Value, StoreError> {
    let mut object = Map::new();
    for (i, (name, form)) in (1..).zip(columns) {
        let value = match form {
            Form::Text => r.opt_text(i)?.map(Value::from),
            Form::Int => r.opt_int(i)?.map(Value::from),
            Form::Json => {
                r.opt_text(i)?.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)))
            }
        };
        if let Some(value) = value {
            object.insert((*name).to_owned(), value);
        }
    }
    Ok(Value::Object(object))
}
