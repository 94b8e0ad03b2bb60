//! What a restart keeps.

use toolyard_store::{messages, nodes, runs};

use crate::cast::{self, life, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};
use crate::world::{World, census};

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
