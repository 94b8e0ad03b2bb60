//! What is kept and what goes: runs by their age, all of an entity, all of a
//! tenant. The tables are read from the migrated database, so that a new one
//! that nobody removes or exports is found here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolyard_protocol::{EntityId, FileId, Hash, RunId, SpaceId, TenantId, Timestamp};
use toolyard_store::blobs::{self, FileRow};
use toolyard_store::{audit, export, log, messages, removal, retention, runs, spaces};

use crate::cast;
use crate::home::{Home, START_MS, tx};
use crate::line::Line;
use crate::world::{World, census, with_space};

/// After everything that the stories write.
const LATER: Timestamp = Timestamp::from_millis(START_MS * 2);

/// A run that said something and has ended.
async fn ended(home: &Home, space: Option<&SpaceId>) -> (Line, Option<i64>) {
    let line = Line::running(home, space, &cast::owner("a")).await;
    let done = line.append(&cast::owner("a"), 1, 2, vec![cast::finished()], cast::completed()).await.unwrap();
    let (tenant, run) = (line.run.tenant.clone(), line.run.id.clone());
    if let Some(space) = space {
        tx!(home, write, [tenant, space, run], |tx| {
            let mut words = cast::message("the answer");
            words.run = Some(run.clone());
            messages::insert(tx, &tenant, &space, words).await
        });
    }
    (line, done.free_pos)
}

async fn retire(home: &Home, run: &RunId, before: Timestamp) -> bool {
    let tenant = cast::tenant();
    tx!(home, write, [tenant, run], |tx| retention::retire(tx, &tenant, &run, before).await)
}

/// How many transactions it took.
async fn sweep(home: &Home) -> usize {
    let mut pieces = 0;
    while tx!(home, write, [], |tx| retention::sweep(tx).await) {
        pieces += 1;
    }
    pieces
}

pub(crate) async fn an_old_run_goes_and_its_words_stay(home: &Home) {
    let kept = World::of(home, &cast::tenant()).await;
    let (tenant, space) = with_space(home).await;
    let (line, _) = ended(home, Some(&space)).await;
    let run = line.run.id.clone();
    let made = FileRow {
        id: FileId::mint(),
        hash: Hash::of(b"a picture"),
        media_type: "image/png".to_owned(),
        name: None,
        bytes: 9,
        entity: None,
        run: Some(run.clone()),
        created_at: Timestamp::from_millis(1),
    };
    tx!(home, write, [tenant, run, made], |tx| {
        blobs::put(tx, &tenant, &made.hash, b"a picture").await?;
        blobs::put_file(tx, &tenant, &made).await?;
        blobs::put_of_run(tx, &tenant, &run, &Hash::of(b"large"), b"large").await
    });
    let before = (census(home).await, kept.line.log().await);

    // It is found, and only it: the other run still waits.
    let found = tx!(home, read, [tenant], |tx| retention::ended_before(tx, &tenant, LATER, None, 10).await);
    assert_eq!((found.old, found.next), (vec![run.clone()], None));
    let young = tx!(home, read, [tenant], |tx| {
        retention::ended_before(tx, &tenant, Timestamp::from_millis(1), None, 10).await
    });
    assert_eq!(young.old, []);
    assert!(!retire(home, &run, Timestamp::from_millis(1)).await, "it is too young");
    assert!(!retire(home, &kept.line.run.id, LATER).await, "it still waits");
    assert_eq!(census(home).await, before.0);

    assert!(retire(home, &run, LATER).await);
    assert!(!retire(home, &run, LATER).await, "it is gone");
    assert_eq!(sweep(home).await, 2, "the values, then the end");
    let (gone, log, told, bounds) = tx!(home, read, [tenant, run, space], |tx| {
        Ok((
            runs::get(tx, &tenant, &run).await?,
            log::read(tx, &tenant, &run, 0, 10).await?,
            log::read_space(tx, &tenant, &space, 0, 10).await?,
            spaces::bounds(tx, &tenant, &space).await?.unwrap(),
        ))
    });
    assert_eq!((gone, log, told), (None, vec![], vec![]));
    assert_eq!(bounds, (4, 3), "readers before the last event start over");
    let said =
        tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, None, None, 9).await);
    assert_eq!((said.len(), &said[0].run), (1, &None), "its words stay, without it");
    let (id, large) = (made.id.clone(), Hash::of(b"large"));
    let (file, value) = tx!(home, read, [tenant, id, large], |tx| {
        Ok((blobs::file(tx, &tenant, &id).await?, blobs::get(tx, &tenant, &large).await?))
    });
    assert_eq!(file.map(|f| f.run), Some(None), "what it made stays with the conversation");
    assert_eq!(value, None);
    assert_eq!(kept.line.log().await, before.1, "a neighbour changed");
    let lines = tx!(home, read, [tenant], |tx| audit::list(tx, &tenant, None, 1).await);
    let line = &lines[0];
    assert_eq!((&*line.actor, &*line.action, &*line.target), ("retention", "run.delete", run.as_str()));
    assert_eq!(line.detail, None);

    tx!(home, write, [tenant, space], |tx| spaces::delete(tx, &tenant, &space).await);
    let hash = made.hash.clone();
    assert_eq!(tx!(home, read, [tenant, hash], |tx| blobs::get(tx, &tenant, &hash).await), None);
}

pub(crate) async fn a_large_run_goes_in_pieces_with_those_below_it(home: &Home) {
    let tenant = cast::tenant();
    let before = census(home).await;
    let (root, _) = ended(home, None).await;
    let mut child = cast::new_run(&tenant, None);
    (child.root, child.parent) = (root.run.id.clone(), Some(root.run.id.clone()));
    let child = Line::begun(home, child, Some(&cast::owner("a"))).await;
    child.append(&cast::owner("a"), 1, 0, vec![cast::created(&child.run)], cast::going_on()).await.unwrap();
    for seq in 1..300 {
        child.append(&cast::owner("a"), 1, seq, vec![cast::news()], cast::going_on()).await.unwrap();
    }
    assert!(!retire(home, &root.run.id, LATER).await, "one below it is live");
    child.append(&cast::owner("a"), 1, 300, vec![cast::finished()], cast::completed()).await.unwrap();
    let run = root.run.id.clone();
    tx!(home, write, [tenant, run], |tx| {
        for n in 0..9 {
            let text = format!("value {n}");
            blobs::put_of_run(tx, &tenant, &run, &Hash::of(text.as_bytes()), text.as_bytes()).await?;
        }
        Ok(())
    });
    assert!(!retire(home, &child.run.id, LATER).await, "it goes with its root");
    assert!(retire(home, &root.run.id, LATER).await);
    assert!(sweep(home).await >= 6, "each transaction removes a little");
    let mut after = census(home).await;
    after.retain(|(table, _)| *table != "audit");
    let mut expected = before;
    expected.retain(|(table, _)| *table != "audit");
    assert_eq!(after, expected);
    let tenants = tx!(home, read, [], |tx| retention::next_tenant(tx, None).await);
    assert_eq!(tenants, None, "nobody has a run");
}

pub(crate) async fn the_result_of_a_call_is_found_in_its_run_alone(home: &Home) {
    let (line, call) = Line::parked(home, None, &cast::owner("a")).await;
    let other = Line::running(home, None, &cast::owner("a")).await;
    let of = async |run: &RunId| {
        let tenant = cast::tenant();
        tx!(home, read, [tenant, run, call], |tx| log::result(tx, &tenant, &run, &call).await)
    };
    assert_eq!(of(&line.run.id).await, None, "it has not ended");
    line.fact(vec![cast::returned(&call, serde_json::json!(1))], crate::line::Waking::No).await;
    assert_eq!(of(&line.run.id).await.map(|end| end.call), Some(call.clone()));
    assert_eq!(of(&other.run.id).await, None);
}

/// A column of the migrated database.
#[derive(Debug, Clone)]
struct Column {
    name: String,
    kind: String,
    needed: bool,
}

/// The schema as the database tells it, without the inner tables of the index of words.
async fn schema(home: &Home) -> BTreeMap<String, Vec<Column>> {
    let sql = if home.store.is_sqlite() {
        "SELECT m.name, p.name, p.type, p.\"notnull\" FROM sqlite_master m JOIN pragma_table_info(m.name) p \
         WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'chunk_words%' ORDER BY m.name, p.cid"
    } else {
        "SELECT table_name::text, column_name::text, data_type::text, \
         (CASE WHEN is_nullable = 'NO' AND is_identity = 'NO' THEN 1 ELSE 0 END)::bigint \
         FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
    };
    let rows = tx!(home, read, [], |tx| {
        tx.all(sql, &[], |r| {
            let column = Column { name: r.text(1)?, kind: r.text(2)?.to_lowercase(), needed: r.flag(3)? };
            Ok((r.text(0)?, column))
        })
        .await
    });
    let mut tables: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for (table, column) in rows {
        tables.entry(table).or_default().push(column);
    }
    assert!(tables.len() > 40, "{tables:?}");
    tables
}

async fn number(home: &Home, sql: String) -> i64 {
    let sql: &'static str = sql.leak();
    tx!(home, read, [], |tx| tx.one(sql, &[], |r| r.int(0)).await).unwrap()
}

/// Puts a row into a table, with something in every column that needs it.
async fn put(home: &Home, table: &str, columns: &[Column], given: &[(&str, &str)]) {
    let sqlite = home.store.is_sqlite();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in columns {
        let own = given.iter().find(|(name, _)| *name == column.name).map(|(_, value)| format!("'{value}'"));
        // An INTEGER of SQLite is a row's own number.
        if own.is_none() && (!column.needed || column.kind == "integer") {
            continue;
        }
        let token = RunId::mint();
        values.push(own.unwrap_or_else(|| match column.kind.as_str() {
            "text" => format!("'{token}'"),
            "bigint" => "1".to_owned(),
            "blob" => "x'00'".to_owned(),
            "bytea" => "'\\x00'::bytea".to_owned(),
            "tsvector" => "''::tsvector".to_owned(),
            other => panic!("{table}.{}: a column of type {other}", column.name),
        }));
        names.push(column.name.clone());
    }
    let sql = format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", "));
    let sql: &'static str = sql.leak();
    assert_eq!(tx!(home, write, [], |tx| tx.exec(sql, &[]).await), 1, "{sqlite} {sql}");
}

/// Columns that name an entity, by the house's words for it.
fn names_entities(table: &str, column: &str) -> bool {
    let agents = ["memories", "plans", "inbox"];
    let words = ["entity", "agent_entity", "triggered_by", "writer", "creator"];
    words.contains(&column)
        || (column == "owner" && table != "runs")
        || (column == "agent" && agents.contains(&table))
        || (table, column) == ("entities", "id")
}

/// Rows of each table that name the entity somewhere.
async fn naming(home: &Home, tables: &BTreeMap<String, Vec<Column>>, id: &EntityId) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for (table, columns) in tables {
        let texts: Vec<String> = columns
            .iter()
            .filter(|c| c.kind == "text")
            .map(|c| format!("\"{}\" LIKE '%{id}%'", c.name))
            .collect();
        if texts.is_empty() {
            continue;
        }
        let rows = number(home, format!("SELECT count(*) FROM {table} WHERE {}", texts.join(" OR "))).await;
        if rows > 0 {
            found.insert(table.clone(), rows);
        }
    }
    found
}

/// A world whose entity is named in every column that can name one.
async fn named_everywhere(home: &Home) -> (World, BTreeMap<String, Vec<Column>>) {
    let world = World::of(home, &cast::tenant()).await;
    let tables = schema(home).await;
    for by_it in [true, false] {
        let mut run = cast::new_run(&world.tenant, Some(&world.space));
        let one = Some(world.entity.clone());
        if by_it {
            run.triggered_by = one
        } else {
            run.agent_entity = one
        }
        let line = Line::begun(home, run, Some(&cast::owner("a"))).await;
        let events = vec![cast::created(&line.run), cast::started()];
        line.append(&cast::owner("a"), 1, 0, events, cast::going_on()).await.unwrap();
    }
    for (table, columns) in &tables {
        for column in columns.iter().filter(|c| names_entities(table, &c.name)) {
            let sql = format!("SELECT count(*) FROM {table} WHERE {} = '{}'", column.name, world.entity);
            if number(home, sql).await == 0 {
                let given = [("tenant", world.tenant.as_str()), (&*column.name, world.entity.as_str())];
                put(home, table, columns, &given).await;
            }
        }
    }
    (world, tables)
}

pub(crate) async fn a_deleted_entity_leaves_nothing_but_the_audit(home: &Home) {
    let neighbour = World::of(home, &cast::tenant()).await;
    let (world, tables) = named_everywhere(home).await;
    let before = (neighbour.line.log().await, naming(home, &tables, &neighbour.entity).await);
    let (tenant, id) = (&world.tenant, &world.entity);
    let summary = [("tenant", tenant.as_str()), ("space", world.space.as_str())];
    put(home, "compactions", &tables["compactions"], &summary).await;
    assert!(removal::entity(&home.store, tenant, id, "key_1").await.unwrap());
    let of_space = format!("SELECT count(*) FROM compactions WHERE space = '{}'", world.space);
    assert_eq!(number(home, of_space).await, 0, "a summary tells what it said");
    // As if the first removal had been cut short.
    let late = [("tenant", tenant.as_str()), ("entity", id.as_str())];
    put(home, "messages", &tables["messages"], &late).await;
    assert!(!removal::entity(&home.store, tenant, id, "key_1").await.unwrap());
    let left = naming(home, &tables, id).await;
    assert_eq!(left, BTreeMap::from([("audit".to_owned(), 1)]));
    assert_eq!(number(home, "SELECT count(*) FROM remains".to_owned()).await, 0);
    let (tenant, message) = (world.tenant.clone(), world.message.clone());
    let words = tx!(home, read, [tenant, message], |tx| messages::get(tx, &tenant, &message).await);
    assert_eq!(words, None, "its words are gone");
    let after = (neighbour.line.log().await, naming(home, &tables, &neighbour.entity).await);
    assert_eq!(after, before, "a neighbour changed");
}

pub(crate) async fn a_removal_that_was_cut_short_is_finished(home: &Home) {
    let neighbour = World::of(home, &cast::tenant()).await;
    let (world, tables) = named_everywhere(home).await;
    let before = (neighbour.line.log().await, naming(home, &tables, &neighbour.entity).await);
    assert_eq!(removal::cut_short(&home.store).await.unwrap(), []);
    // As a death leaves it: begun, and nothing is gone yet.
    let begun = [
        ("tenant", world.tenant.as_str()),
        ("kind", "entity"),
        ("target", world.entity.as_str()),
        ("actor", "key_1"),
    ];
    put(home, "removals", &tables["removals"], &begun).await;
    let other = TenantId::parse("other").unwrap();
    World::of(home, &other).await;
    let begun = [("tenant", "default"), ("kind", "tenant"), ("target", "other"), ("actor", "cli")];
    put(home, "removals", &tables["removals"], &begun).await;

    let going =
        async |tenant: &TenantId| tx!(home, read, [tenant], |tx| removal::is_going(tx, &tenant).await);
    assert_eq!((going(&other).await, going(&world.tenant).await), (true, false));

    let left = removal::cut_short(&home.store).await.unwrap();
    assert_eq!(left.len(), 2);
    for one in left.iter().chain(&left) {
        // Somebody else may do the same.
        removal::finish(&home.store, one).await.unwrap();
    }
    assert_eq!(removal::cut_short(&home.store).await.unwrap(), []);
    assert!(!going(&other).await);
    assert_eq!(naming(home, &tables, &world.entity).await, BTreeMap::from([("audit".to_owned(), 1)]));
    for (table, columns) in &tables {
        if columns.iter().any(|column| column.name == "tenant") {
            let rows = number(home, format!("SELECT count(*) FROM {table} WHERE tenant = 'other'")).await;
            assert_eq!(rows, 0, "{table}");
        }
    }
    let told = "SELECT count(*) FROM audit WHERE action = 'tenant.delete' AND actor = 'cli'";
    assert_eq!(number(home, told.to_owned()).await, 1, "said once");
    // A tenant that is made anew is not what was to go: who comes late takes nothing of it.
    let anew = World::of(home, &other).await;
    let log = anew.line.log().await;
    for one in &left {
        removal::finish(&home.store, one).await.unwrap();
    }
    assert_eq!(anew.line.log().await, log);
    let after = (neighbour.line.log().await, naming(home, &tables, &neighbour.entity).await);
    assert_eq!(after, before, "a neighbour changed");
}

pub(crate) async fn an_export_has_every_row_that_names_an_entity(home: &Home) {
    let (world, tables) = named_everywhere(home).await;
    let known: BTreeSet<(String, String)> = export::TABLES
        .iter()
        .flat_map(|table| table.naming.iter().map(|column| (table.name.to_owned(), (*column).to_owned())))
        .collect();
    let found: BTreeSet<(String, String)> = tables
        .iter()
        .flat_map(|(table, columns)| columns.iter().map(|c| (table.clone(), c.name.clone())))
        .filter(|(table, column)| names_entities(table, column))
        .collect();
    assert_eq!(known, found, "the export and the removal must know every column that names an entity");

    let rows = exported(home, &world).await;
    for (table, columns) in &tables {
        let by: Vec<String> = columns
            .iter()
            .filter(|c| names_entities(table, &c.name))
            .map(|c| format!("{} = '{}'", c.name, world.entity))
            .collect();
        if by.is_empty() {
            continue;
        }
        let stored = number(home, format!("SELECT count(*) FROM {table} WHERE {}", by.join(" OR "))).await;
        let told = rows.iter().filter(|line| line.table == table).count();
        assert!(stored > 0, "{table} has no row of the entity");
        assert_eq!(i64::try_from(told).unwrap(), stored, "{table}");
    }
    assert_eq!(rows.iter().filter(|line| line.table == "events").count(), 4, "the logs of its two runs");
    let hello = rows.iter().find(|line| line.table == "messages").unwrap();
    assert_eq!(hello.row["parts"][0]["text"], "hello");
    assert!(rows.iter().all(|line| line.row.get("sealed").is_none() && line.row.get("state").is_none()));
    assert!(rows.iter().all(|line| line.row != Value::Null));

    tx!(home, write, [], |tx| tx.exec("UPDATE events SET body = 'not json'", &[]).await);
    let broken = exported(home, &world).await;
    let unreadable = broken.iter().filter(|line| line.row["unreadable"].is_string()).count();
    assert_eq!((unreadable, broken.len()), (2, rows.len() - 2), "a log that cannot be read is named");
}

async fn exported(home: &Home, world: &World) -> Vec<export::Line> {
    let (mut place, mut rows) = (Some(export::Place::default()), Vec::new());
    while let Some(at) = place {
        let (tenant, entity) = (world.tenant.clone(), world.entity.clone());
        let (lines, next) =
            tx!(home, read, [tenant, entity], |tx| export::page(tx, &tenant, &entity, at).await);
        rows.extend(lines);
        place = next;
    }
    rows
}

pub(crate) async fn a_removed_tenant_leaves_nothing_behind(home: &Home) {
    let world = World::of(home, &cast::tenant()).await;
    let foreign = World::of(home, &cast::other_tenant()).await;
    let tables = schema(home).await;
    let of_tenants: Vec<(&String, &Vec<Column>)> =
        tables.iter().filter(|(_, columns)| columns.iter().any(|c| c.name == "tenant")).collect();
    let found: BTreeSet<&str> = of_tenants.iter().map(|(table, _)| table.as_str()).collect();
    let known: BTreeSet<&str> = removal::OF_TENANTS.iter().map(|(table, _)| *table).collect();
    assert_eq!(known, found, "the removal must know every table of tenants");
    for (table, columns) in &of_tenants {
        let of = |tenant: &TenantId| format!("SELECT count(*) FROM {table} WHERE tenant = '{tenant}'");
        for tenant in [&world.tenant, &foreign.tenant] {
            if number(home, of(tenant)).await == 0 {
                put(home, table, columns, &[("tenant", tenant.as_str())]).await;
            }
        }
    }
    let counts = async |tenant: &TenantId| {
        let mut counts = Vec::new();
        for (table, _) in &of_tenants {
            let sql = format!("SELECT count(*) FROM {table} WHERE tenant = '{tenant}'");
            counts.push((table.as_str(), number(home, sql).await));
        }
        counts
    };
    let theirs = counts(&foreign.tenant).await;
    assert!(counts(&world.tenant).await.iter().all(|(_, rows)| *rows > 0));
    assert!(removal::tenant(&home.store, &world.tenant, "cli").await.unwrap() > 0);
    assert_eq!(removal::tenant(&home.store, &world.tenant, "cli").await.unwrap(), 0);
    assert!(counts(&world.tenant).await.iter().all(|(_, rows)| *rows == 0));
    assert_eq!(counts(&foreign.tenant).await, theirs, "another tenant changed");
    let left = "SELECT count(*) FROM tenants WHERE id = 'acme'".to_owned();
    assert_eq!(number(home, left).await, 0);
    if home.store.is_sqlite() {
        let words = "SELECT count(*) FROM chunk_words WHERE chunk_words MATCH 'tenant:acme'".to_owned();
        assert_eq!(number(home, words).await, 0, "the words of its documents");
    }
    let operator = TenantId::default_tenant();
    let lines = tx!(home, read, [operator], |tx| audit::list(tx, &operator, None, 9).await);
    assert_eq!(lines.len(), 1);
    assert_eq!((&*lines[0].action, &*lines[0].target), ("tenant.delete", "acme"));
}
