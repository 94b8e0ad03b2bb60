//! What a restart keeps.

use toolyard_protocol::SpaceId;
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
/// events, a line for each row, or one line for all that follow each other.
async fn as_two_tables(tx: &mut Tx<'_>, sqlite: bool, whole: &SpaceId) -> Result<(), StoreError> {
    let lines = if sqlite {
        "INSERT INTO space_log SELECT e.tenant, s.id, e.pos, e.run, e.seq, 1 + length(e.body) - length(replace(e.body, char(10), '')) \
         FROM events e JOIN spaces s ON s.nr = e.space JOIN runs r ON r.id = e.run WHERE s.id <> $1"
    } else {
        "INSERT INTO space_log SELECT e.tenant, s.id, e.pos, e.run, e.seq, 1 + length(e.body) - length(replace(e.body, chr(10), '')) \
         FROM events e JOIN spaces s ON s.nr = e.space JOIN runs r ON r.id = e.run WHERE s.id <> $1"
    };
    tx.exec(
        "CREATE TABLE space_log (tenant TEXT NOT NULL, space TEXT NOT NULL, last_pos BIGINT NOT NULL, run TEXT NOT NULL, \
         last_seq BIGINT NOT NULL, events BIGINT NOT NULL, PRIMARY KEY (tenant, space, last_pos))",
        &[],
    )
    .await?;
    tx.exec(lines, &[whole.as_str().into()]).await?;
    tx.exec(
        "INSERT INTO space_log SELECT e.tenant, s.id, max(e.pos), e.run, max(e.seq), max(e.seq) \
         FROM events e JOIN spaces s ON s.nr = e.space WHERE s.id = $1 GROUP BY e.tenant, s.id, e.run",
        &[whole.as_str().into()],
    )
    .await?;
    let both = [
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

/// Two runs that speak in turns, several events at a time and long ones too.
async fn in_turns(home: &Home, space: &SpaceId) -> (Line, Line) {
    let (first, second) = (
        Line::running(home, Some(space), &owner("a")).await,
        Line::running(home, Some(space), &owner("a")).await,
    );
    for _ in 0..5 {
        first.fact(vec![cast::news(); 12], Waking::No).await;
        second.fact(vec![cast::news(); 2], Waking::No).await;
    }
    (first, second)
}

/// An upgrade keeps the order of every space. What is in no space stays outside,
/// and what was removed does not come back.
pub(crate) async fn a_log_that_lay_in_two_tables_becomes_one(home: Home) -> Home {
    let node = owner("a");
    let (tenant, space) = with_space(&home).await;
    let whole = with_space(&home).await.1;
    let (first, second) = in_turns(&home, &space).await;
    tx!(home, write, [tenant, space], |tx| messages::insert(tx, &tenant, &space, cast::message("hello"))
        .await);
    let last = second.run.clone();
    drop((first, second));
    let gone = Line::parked(&home, Some(&space), &node).await.0.run.id;
    tx!(home, write, [tenant, gone], |tx| {
        tx.exec(
            "DELETE FROM runs WHERE tenant = $1 AND id = $2",
            &[tenant.as_str().into(), gone.as_str().into()],
        )
        .await
    });
    drop(Line::parked(&home, Some(&whole), &node).await);
    let alone = Line::parked(&home, None, &node).await.0.run;
    let told = async |home: &Home| {
        tx!(home, read, [tenant, space, whole], |tx| {
            Ok((
                log::read_space(tx, &tenant, &space, 0, 1_000).await?,
                log::read_space(tx, &tenant, &whole, 0, 1_000).await?,
            ))
        })
    };
    let before = told(&home).await;
    assert_eq!((before.0.len(), before.1.len()), (2 * 2 + 5 * 14, 5));

    let sqlite = matches!(home.settings, Settings::Sqlite { .. });
    tx!(home, write, [whole], |tx| as_two_tables(tx, sqlite, &whole).await);
    let home = home.reopened().await;
    assert_eq!(told(&home).await, before);
    let line = Line { store: home.store.clone(), run: alone };
    assert_eq!(line.log().await.len(), 5);
    let line = Line { store: home.store.clone(), run: last };
    line.fact(vec![cast::news()], Waking::No).await;
    let (after, _) = told(&home).await;
    assert_eq!(after[..before.0.len()], before.0);
    assert_eq!(
        after.last().unwrap().pos,
        before.0.last().unwrap().pos + 1 + 1 + 5,
        "a message, and what is gone"
    );
    drop(line);
    home
}
