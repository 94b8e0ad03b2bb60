//! What a restart keeps.

use toolyard_store::{Settings, StoreError, Tx, log, messages, nodes, runs};

use crate::cast::{self, life, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};
use crate::world::{World, census, with_space};

pub(crate) async fn reopening_keeps_everything(home: Home) -> Home {
    let world = World::of(&home, &cast::tenant()).await;
    let (tenant, space) = (world.tenant.clone(), world.space.clone());
    let line = &world.line;
    let before = (census(&home).await, line.row().await, line.log().await, line.waits().await);
    let page =
        tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, None, None, 10).await);
    let World { line, wait, .. } = world;
    let run = line.run.clone();
    drop(line);

    let home = home.reopened().await;
    let line = Line { store: home.store.clone(), run };
    let after = (census(&home).await, line.row().await, line.log().await, line.waits().await);
    assert_eq!(after, before);
    let again =
        tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, None, None, 10).await);
    assert_eq!(again, page);
    // A call waits on disk: its result is accepted by the new process.
    let call = after.3[0].wait.call.clone();
    assert_eq!(after.3[0].wait.id, wait);
    let result = vec![cast::returned(&call, serde_json::json!("here"))];
    let done = line.fact(result, Waking::Start(life("a", "second"))).await;
    assert_eq!((done.seq, done.assigned), (4, Some(2)));
    drop(line);
    home
}

pub(crate) async fn a_node_finds_its_runs_again_after_a_restart(home: Home) -> Home {
    let (earlier, later) = (owner("a"), life("a", "second"));
    tx!(home, write, [earlier], |tx| nodes::register(tx, &earlier, 4000).await);
    let run = Line::running(&home, None, &earlier).await.run;
    let home = home.reopened().await;
    let taken = tx!(home, write, [later], |tx| {
        nodes::register(tx, &later, 4000).await?;
        runs::claim(tx, &later, 10).await
    });
    assert_eq!(taken.len(), 1);
    assert_eq!((&taken[0].run, taken[0].epoch), (&run.id, 2));
    home
}

/// The database as the release before wrote it: a log of the space beside the
/// events, with one line for all that followed each other.
async fn as_two_tables(tx: &mut Tx<'_>, sqlite: bool) -> Result<(), StoreError> {
    let both: [&str; 5] = [
        "CREATE TABLE space_log (tenant TEXT NOT NULL, space TEXT NOT NULL, last_pos BIGINT NOT NULL, run TEXT NOT NULL, \
         last_seq BIGINT NOT NULL, events BIGINT NOT NULL, PRIMARY KEY (tenant, space, last_pos))",
        "INSERT INTO space_log SELECT e.tenant, s.id, max(e.pos), e.run, max(e.seq), max(e.seq) \
         FROM events e JOIN spaces s ON s.nr = e.space GROUP BY e.tenant, s.id, e.run",
        "DROP INDEX events_space",
        "ALTER TABLE events DROP COLUMN space",
        "ALTER TABLE events DROP COLUMN pos",
    ];
    let of_postgres: &[&str] =
        &["ALTER TABLE spaces DROP COLUMN nr", "DELETE FROM schema_version WHERE version = 18"];
    let of_sqlite: &[&str] = &[
        "CREATE TABLE spaces_then AS SELECT * FROM spaces",
        "ALTER TABLE spaces_then DROP COLUMN nr",
        "DROP TABLE spaces",
        "ALTER TABLE spaces_then RENAME TO spaces",
        "CREATE UNIQUE INDEX spaces_foreign ON spaces (tenant, owner, foreign_id) WHERE foreign_id IS NOT NULL",
        "PRAGMA user_version = 17",
    ];
    let own = if sqlite { of_sqlite } else { of_postgres };
    for sql in both.iter().chain(own) {
        tx.exec(*sql, &[]).await?;
    }
    Ok(())
}

/// An upgrade keeps the order of every space, and a run outside of spaces stays outside.
pub(crate) async fn a_log_that_lay_in_two_tables_becomes_one(home: Home) -> Home {
    let node = owner("a");
    let (tenant, space) = with_space(&home).await;
    let other = with_space(&home).await.1;
    let first = Line::parked(&home, Some(&space), &node).await.0.run;
    tx!(home, write, [tenant, space], |tx| messages::insert(tx, &tenant, &space, cast::message("hello"))
        .await);
    let second = Line::parked(&home, Some(&space), &node).await.0.run;
    let elsewhere = Line::parked(&home, Some(&other), &node).await.0.run;
    let alone = Line::parked(&home, None, &node).await.0.run;
    let told = async |home: &Home| {
        tx!(home, read, [tenant, space, other], |tx| {
            Ok((
                log::read_space(tx, &tenant, &space, 0, 100).await?,
                log::read_space(tx, &tenant, &other, 0, 100).await?,
            ))
        })
    };
    let before = told(&home).await;
    let runs: Vec<_> = before.0.iter().map(|event| event.run.clone()).collect();
    assert!(runs.contains(&first.id) && runs.contains(&second.id));
    assert_eq!(before.1.last().unwrap().run, elsewhere.id);

    let sqlite = matches!(home.settings, Settings::Sqlite { .. });
    home.write(move |tx| Box::pin(as_two_tables(tx, sqlite))).await;
    let home = home.reopened().await;
    assert_eq!(told(&home).await, before);
    let line = Line { store: home.store.clone(), run: alone };
    assert_eq!(line.log().await.len(), 5);
    let line = Line { store: home.store.clone(), run: second };
    line.fact(vec![cast::news()], Waking::No).await;
    let (after, _) = told(&home).await;
    assert_eq!(after[..before.0.len()], before.0);
    assert_eq!(after.last().unwrap().pos, before.0.last().unwrap().pos + 1);
    drop(line);
    home
}
