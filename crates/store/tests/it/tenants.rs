//! Nothing crosses from one tenant to another. A table over every function
//! that reads or changes rows by name: with the right tenant it works, with
//! another tenant's name and the same ids it finds nothing.

use toolyard_protocol::principal::Role;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{BranchId, ClientId, TenantId};
use toolyard_store::{
    StoreError, Tx, agents, audit, blobs, clients, entities, goals, grants, inbox, keys, knowledge, log,
    memories, messages, plans, runs, spaces, waits,
};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::world::{World, census};

/// How many rows each reading function shows to `tenant` of `world`'s things.
async fn seen(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    world: &World,
) -> Result<Vec<(&'static str, usize)>, StoreError> {
    let t = tenant;
    let run = &world.line.run.id;
    let agent_entity = world.line.run.agent_entity.as_ref().unwrap();
    let main = BranchId::main();
    let one = usize::from;
    Ok(vec![
        ("agents::get", one(agents::get(tx, t, &world.agent).await?.is_some())),
        ("agents::by_name", one(agents::by_name(tx, t, &world.agent_name).await?.is_some())),
        ("agents::list", agents::list(tx, t, None, 100).await?.len()),
        ("agents::version", one(agents::version(tx, t, &world.version).await?.is_some())),
        ("agents::toolset", one(agents::toolset(tx, t, &world.toolset).await?.is_some())),
        ("audit::list", audit::list(tx, t, None, 100).await?.len()),
        ("blobs::get", one(blobs::get(tx, t, &world.blob).await?.is_some())),
        ("blobs::file", one(blobs::file(tx, t, &world.file).await?.is_some())),
        ("clients::list", clients::list(tx, t, 100).await?.len()),
        ("entities::get", one(entities::get(tx, t, &world.entity).await?.is_some())),
        ("entities::by_external", one(entities::by_external(tx, t, &world.external).await?.is_some())),
        ("entities::list", entities::list(tx, t, None, None, 100).await?.len()),
        ("grants::get", one(grants::get(tx, t, &world.grant).await?.is_some())),
        ("grants::list", grants::list(tx, t, None, 100).await?.len()),
        ("grants::of_entity", grants::of_entity(tx, t, Some(&world.entity)).await?.len()),
        ("keys::list", keys::list(tx, Some(t)).await?.len()),
        ("log::read", log::read(tx, t, run, 0, 100).await?.len()),
        ("log::event", one(log::event(tx, t, run, 1).await?.is_some())),
        ("log::read_space", log::read_space(tx, t, &world.space, 0, 100).await?.len()),
        ("messages::get", one(messages::get(tx, t, &world.message).await?.is_some())),
        ("messages::page", messages::page(tx, t, &world.space, None, None, 100).await?.len()),
        ("messages::page after", messages::page(tx, t, &world.space, Some(0), None, 100).await?.len()),
        ("messages::history", messages::history(tx, t, &world.space, &main, 0, 100).await?.len()),
        ("messages::of_branch", messages::of_branch(tx, t, &world.space, &main).await?.len()),
        ("messages::branch_page", messages::branch_page(tx, t, &world.space, &main, None, 100).await?.len()),
        ("runs::get", one(runs::get(tx, t, run).await?.is_some())),
        ("runs::lock", one(runs::lock(tx, t, run).await?.is_some())),
        ("runs::lock_live", one(runs::lock_live(tx, t, &world.space, agent_entity).await?.is_some())),
        ("runs::list", runs::list(tx, t, None, None, None, 100).await?.len()),
        (
            "runs::list of space",
            runs::list(tx, t, Some(&world.space), Some(RunStatus::WaitingTool), None, 100).await?.len(),
        ),
        ("spaces::get", one(spaces::get(tx, t, &world.space).await?.is_some())),
        ("spaces::list", spaces::list(tx, t, None, None, 100).await?.len()),
        ("spaces::list of member", spaces::list(tx, t, Some(&world.entity), None, 100).await?.len()),
        ("spaces::agents_in", spaces::agents_in(tx, t, &world.space).await?.len()),
        ("spaces::members", spaces::members(tx, t, &world.space).await?.len()),
        ("spaces::role", one(spaces::role(tx, t, &world.space, &world.entity).await?.is_some())),
        ("goals::get", one(goals::get(tx, t, &world.goal).await?.is_some())),
        ("goals::of_entity", goals::of_entity(tx, t, &world.entity).await?.len()),
        ("goals::list", goals::list(tx, t, None, None, 100).await?.len()),
        ("memories::get", one(memories::get(tx, t, &world.memory).await?.is_some())),
        ("memories::list", memories::list(tx, t, None, None, None, None, 100).await?.len()),
        ("plans::get", one(plans::get(tx, t, &world.plan).await?.is_some())),
        ("plans::list", plans::list(tx, t, None, None, None, 100).await?.len()),
        ("inbox::get", one(inbox::get(tx, t, &world.notice).await?.is_some())),
        ("inbox::list", inbox::list(tx, t, None, false, None, 100).await?.len()),
        ("knowledge::get", one(knowledge::get(tx, t, &world.document).await?.is_some())),
        ("knowledge::text", one(knowledge::text(tx, t, &world.document).await?.is_some())),
        ("knowledge::list", knowledge::list(tx, t, None, None, None, 100).await?.len()),
        (
            "knowledge::search",
            knowledge::search(tx, t, Some(&world.space), &["words".to_owned()], 100).await?.len(),
        ),
        ("waits::of_run", waits::of_run(tx, t, run).await?.len()),
        ("waits::open_of_run", waits::open_of_run(tx, t, run).await?.len()),
        ("waits::find", one(waits::find(tx, t, &world.wait).await?.is_some())),
        ("waits::list_open", waits::list_open(tx, t, None, None, None, None, 100).await?.len()),
        ("waits::list_open of run", waits::list_open(tx, t, Some(run), None, None, None, 100).await?.len()),
    ])
}

pub(crate) async fn no_reading_function_shows_another_tenants_rows(home: &Home) {
    let world = World::of(home, &cast::tenant()).await;
    let (mine, theirs) = tx!(home, write, [world], |tx| Ok((
        seen(tx, &cast::tenant(), &world).await?,
        seen(tx, &cast::other_tenant(), &world).await?
    )));
    for (function, rows) in mine {
        assert!(rows > 0, "{function} shows the owner nothing");
    }
    for (function, rows) in theirs {
        assert_eq!(rows, 0, "{function} shows a stranger {rows} rows");
    }
}

/// Does each changing function change something of `world` for this tenant?
async fn changed(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    world: &World,
) -> Result<Vec<(&'static str, bool)>, StoreError> {
    let t = tenant;
    let (run, node) = (&world.line.run.id, owner("a"));
    let client = ClientId::parse("thief").unwrap();
    let now = tx.now().await?;
    let entity = entities::get(tx, &world.tenant, &world.entity).await?.unwrap();
    let space = spaces::get(tx, &world.tenant, &world.space).await?.unwrap();
    Ok(vec![
        ("entities::update", entities::update(tx, t, &entity).await?),
        ("spaces::update", spaces::update(tx, t, &space).await?),
        ("waits::claim", waits::claim(tx, t, run, &world.wait, &client, now).await?),
        ("runs::hand_back", runs::hand_back(tx, t, run, 2, &node).await?),
        ("keys::revoke", keys::revoke(tx, t, &world.key).await?),
        ("grants::delete", grants::delete(tx, t, &world.grant).await?),
        ("goals::delete", goals::delete(tx, t, &world.goal).await?),
        ("memories::delete", memories::delete(tx, t, &world.memory).await?),
        ("plans::delete", plans::delete(tx, t, &world.plan).await?),
        ("inbox::mark", inbox::mark(tx, t, &world.notice, Some(now)).await?),
        ("inbox::delete", inbox::delete(tx, t, &world.notice).await?),
        ("knowledge::delete", knowledge::delete(tx, t, &world.document).await?),
        ("agents::delete", agents::delete(tx, t, &world.agent).await?),
        ("spaces::remove_member", spaces::remove_member(tx, t, &world.space, &world.entity).await?),
        ("entities::delete", entities::delete(tx, t, &world.entity).await?),
        ("runs::delete", runs::delete(tx, t, run).await?),
        ("spaces::delete", spaces::delete(tx, t, &world.space).await?),
    ])
}

pub(crate) async fn no_changing_function_touches_another_tenants_rows(home: &Home) {
    let world = World::of(home, &cast::tenant()).await;
    let waking = crate::line::Waking::Start(owner("a"));
    world.line.fact(vec![cast::news()], waking).await;
    let before = census(home).await;
    let row = world.line.row().await;
    let theirs = tx!(home, write, [world], |tx| changed(tx, &cast::other_tenant(), &world).await);
    for (function, did) in theirs {
        assert!(!did, "{function} obeyed a stranger");
    }
    assert_eq!(census(home).await, before);
    assert_eq!(world.line.row().await, row);
    let parcel = world.parcel.clone();
    tx!(home, write, [parcel], |tx| {
        toolyard_store::outbox::delivered(tx, &cast::other_tenant(), &parcel).await
    });
    assert_eq!(census(home).await, before);

    let mine = tx!(home, write, [world], |tx| changed(tx, &cast::tenant(), &world).await);
    for (function, did) in mine {
        assert!(did, "{function} did not obey the owner");
    }
}

/// The same ids in two tenants are two things.
pub(crate) async fn the_same_ids_in_two_tenants_are_two_things(home: &Home) {
    let (mine, theirs) = (cast::tenant(), cast::other_tenant());
    let world = World::of(home, &mine).await;
    let space = world.space.clone();
    let run = {
        let mut run = world.line.run.clone();
        run.tenant = theirs.clone();
        run
    };
    let message = {
        let mut message = cast::message("theirs");
        message.id = world.message.clone();
        message
    };
    tx!(home, write, [theirs, space, run, message], |tx| {
        spaces::insert(tx, &theirs, &cast::space(&space)).await?;
        messages::insert(tx, &theirs, &space, message).await?;
        spaces::put_member(tx, &theirs, &space, &toolyard_protocol::EntityId::mint(), Role::Member).await?;
        runs::insert(tx, &run, Some(&owner("b"))).await
    });
    let before = (world.line.row().await, world.line.log().await);
    let twin = crate::line::Line { store: home.store.clone(), run };
    twin.append(&owner("b"), 1, 0, vec![cast::created(&twin.run), cast::finished()], cast::completed())
        .await
        .unwrap();
    assert_eq!((world.line.row().await, world.line.log().await), before);
    assert_eq!(twin.kinds().await, ["RunCreated", "RunFinished"]);
    tx!(home, write, [theirs, space], |tx| spaces::delete(tx, &theirs, &space).await);
    assert_eq!((world.line.row().await, world.line.log().await), before);
    assert_eq!(world.line.open_waits().await.len(), 1);
}
