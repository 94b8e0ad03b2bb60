//! A deletion removes all of a thing and nothing of others.

use toolyard_protocol::{EntityId, FileId, Hash, RunId};
use toolyard_store::blobs::{self, FileRow};
use toolyard_store::{entities, messages, runs, spaces};

use crate::cast;
use crate::home::{Home, tx};
use crate::line::Line;
use crate::world::{World, census, with_space};

/// What a space shows, to see that it did not change.
async fn told(home: &Home, world: &World) -> impl PartialEq + std::fmt::Debug + use<> {
    let (tenant, space) = (world.tenant.clone(), world.space.clone());
    let page =
        tx!(home, read, [tenant, space], |tx| messages::page(tx, &tenant, &space, None, None, 100).await);
    let members = tx!(home, read, [tenant, space], |tx| spaces::members(tx, &tenant, &space).await);
    let line = &world.line;
    (page, members, line.row().await, line.log().await, line.waits().await)
}

fn count(census: &[(&str, i64)], table: &str) -> i64 {
    census.iter().find(|(name, _)| *name == table).unwrap().1
}

pub(crate) async fn a_deleted_space_takes_all_of_it_and_nothing_else(home: &Home) {
    let kept = World::of(home, &cast::tenant()).await;
    let foreign = World::of(home, &cast::other_tenant()).await;
    let before = (census(home).await, told(home, &kept).await, told(home, &foreign).await);
    // A second space, with a second run in it that is over.
    let (tenant, space) = with_space(home).await;
    tx!(home, write, [tenant, space], |tx| {
        let role = toolyard_protocol::principal::Role::Member;
        spaces::put_member(tx, &tenant, &space, &EntityId::mint(), role).await?;
        messages::insert(tx, &tenant, &space, cast::message("bye")).await
    });
    Line::parked(home, Some(&space), &cast::owner("a")).await;
    let (over, _) = Line::parked(home, Some(&space), &cast::owner("a")).await;
    let end = vec![cast::finished()];
    over.fact(end, crate::line::Waking::No).await;
    let grown = census(home).await;
    for table in ["spaces", "members", "messages", "runs", "events", "waits"] {
        assert!(count(&grown, table) > count(&before.0, table), "{table}");
    }

    for expected in [true, false] {
        let deleted = tx!(home, write, [tenant, space], |tx| spaces::delete(tx, &tenant, &space).await);
        assert_eq!(deleted, expected);
    }
    let after = (census(home).await, told(home, &kept).await, told(home, &foreign).await);
    assert_eq!(after.0, before.0);
    assert!(after == before, "a neighbour changed: {after:?}");
}

pub(crate) async fn a_deleted_run_takes_its_log_waits_and_messages(home: &Home) {
    let kept = World::of(home, &cast::tenant()).await;
    let before = (census(home).await, told(home, &kept).await);
    let (tenant, space) = (kept.tenant.clone(), kept.space.clone());
    let (line, _) = Line::parked(home, Some(&space), &cast::owner("a")).await;
    let run = line.run.id.clone();
    tx!(home, write, [tenant, space, run], |tx| {
        let mut turn = cast::message("words of the run");
        turn.run = Some(run.clone());
        messages::insert(tx, &tenant, &space, turn).await
    });
    let unknown = RunId::mint();
    for (id, expected) in [(&unknown, false), (&run, true), (&run, false)] {
        let deleted = tx!(home, write, [tenant, id], |tx| runs::delete(tx, &tenant, &id).await);
        assert_eq!(deleted, expected);
    }
    let after = (census(home).await, told(home, &kept).await);
    assert_eq!(after.0, before.0);
    assert!(after == before, "a neighbour changed: {after:?}");
}

/// Large values and files go with the last one that has them, and not before.
pub(crate) async fn large_values_and_files_go_with_the_last_that_has_them(home: &Home) {
    let (tenant, space) = with_space(home).await;
    let entity = EntityId::mint();
    let (one, two) = (Line::parked(home, Some(&space), &cast::owner("a")).await.0, RunId::mint());
    let run = one.run.id.clone();
    let keep = async |run: &RunId, text: &'static str| {
        let hash = Hash::of(text.as_bytes());
        tx!(home, write, [tenant, run, hash], |tx| {
            blobs::put_of_run(tx, &tenant, &run, &hash, text.as_bytes()).await
        });
    };
    let file = async |entity: Option<&EntityId>, run: Option<&RunId>, text: &'static str| {
        let file = FileRow {
            id: FileId::mint(),
            hash: Hash::of(text.as_bytes()),
            media_type: "text/plain".to_owned(),
            name: None,
            bytes: 1,
            entity: entity.cloned(),
            run: run.cloned(),
            created_at: toolyard_protocol::Timestamp::from_millis(1),
        };
        tx!(home, write, [tenant, file], |tx| {
            blobs::put(tx, &tenant, &file.hash, text.as_bytes()).await?;
            blobs::put_file(tx, &tenant, &file).await
        });
    };
    keep(&run, "of one run").await;
    keep(&run, "of both").await;
    // Another run is a copy of one that goes.
    let first = RunId::mint();
    keep(&first, "of both").await;
    tx!(home, write, [tenant, first, two], |tx| blobs::share(tx, &tenant, &first, &two).await);
    tx!(home, write, [tenant, first], |tx| runs::delete(tx, &tenant, &first).await);
    keep(&run, "a file too").await;
    file(Some(&entity), None, "a file too").await;
    file(None, Some(&run), "made by a tool").await;
    file(None, None, "of a backend").await;
    let left = async || {
        let texts = ["of one run", "of both", "a file too", "made by a tool", "of a backend"];
        let mut left = Vec::new();
        for text in texts {
            let hash = Hash::of(text.as_bytes());
            if tx!(home, read, [tenant, hash], |tx| blobs::get(tx, &tenant, &hash).await).is_some() {
                left.push(text);
            }
        }
        (left, count(&census(home).await, "files"))
    };
    assert_eq!(left().await.0.len(), 5);
    assert!(tx!(home, write, [tenant, run], |tx| runs::delete(tx, &tenant, &run).await));
    assert_eq!(left().await, (vec!["of both", "a file too", "of a backend"], 2));
    tx!(home, write, [tenant, entity], |tx| entities::delete(tx, &tenant, &entity).await);
    assert_eq!(left().await, (vec!["of both", "of a backend"], 1));
    // A space takes those of its runs along.
    let last = Line::parked(home, Some(&space), &cast::owner("a")).await.0.run.id.clone();
    keep(&last, "of one run").await;
    assert_eq!(left().await.0, ["of one run", "of both", "of a backend"]);
    tx!(home, write, [tenant, space], |tx| spaces::delete(tx, &tenant, &space).await);
    assert_eq!(left().await.0, ["of both", "of a backend"]);
}
