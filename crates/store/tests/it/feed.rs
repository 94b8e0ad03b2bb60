//! What readers on this node hear: commits, deltas, and the step so far.

use std::sync::Arc;

use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::{CallId, RunId, SpaceId};
use toolyard_store::{Joined, messages};

use crate::cast::{self, owner};
use crate::home::{Home, tx};
use crate::line::{Line, Waking};
use crate::world::with_space;

fn delta(run: &RunId, step: u32, attempt: u32, offset: u32, piece: Piece) -> Delta {
    Delta { run: run.clone(), step, attempt, offset, piece }
}

fn text(text: &str) -> Piece {
    Piece::TextDelta { part: 0, text: Arc::from(text) }
}

fn missed(joined: &Joined) -> Vec<(u32, u32, u32, Vec<Piece>)> {
    joined.so_far.iter().map(|s| (s.step, s.attempt, s.next, s.pieces().collect())).collect()
}

pub(crate) async fn readers_of_a_run_and_its_space_hear_each_commit(home: &Home) {
    let (node, space) = (owner("a"), with_space(home).await.1);
    let line = Line::running(home, Some(&space), &node).await;
    let feed = home.store.feed();
    let (mut of_run, mut of_space) = (feed.join_run(&line.run.id), feed.join_space(&space));
    let mut worker = feed.watch_run(&line.run.id);
    let stranger = feed.join_run(&RunId::mint());

    line.append(&node, 1, 2, vec![cast::news()], cast::going_on()).await.unwrap();
    line.fact(vec![cast::news()], Waking::No).await;
    for committed in [&mut of_run.committed, &mut worker.committed] {
        committed.changed().await.unwrap();
        assert_eq!(committed.borrow_and_update().seq, 4);
    }
    of_space.committed.changed().await.unwrap();
    let heard = of_space.committed.borrow_and_update().seq;

    // A message is news of the space, not of a run.
    let tenant = cast::tenant();
    tx!(home, write, [tenant, space], |tx| messages::insert(tx, &tenant, &space, cast::message("hi")).await);
    of_space.committed.changed().await.unwrap();
    assert!(of_space.committed.borrow_and_update().seq > heard);
    assert!(!of_run.committed.has_changed().unwrap());
    assert!(!stranger.committed.has_changed().unwrap());
}

pub(crate) async fn deltas_reach_readers_of_the_run_and_its_space(home: &Home) {
    let (run, space) = (RunId::mint(), SpaceId::mint());
    let feed = home.store.feed();
    let (mut of_run, mut of_space) = (feed.join_run(&run), feed.join_space(&space));
    let sent = [
        delta(&run, 1, 1, 0, Piece::TextStart { part: 0 }),
        delta(&run, 1, 1, 1, text("Hel")),
        delta(&run, 1, 1, 2, text("lo")),
    ];
    for delta in &sent {
        feed.deltas(Some(&space), vec![delta.clone()]);
    }
    // Another run's words stay there.
    feed.deltas(None, vec![delta(&RunId::mint(), 1, 1, 0, text("other"))]);
    for ear in [&mut of_run, &mut of_space] {
        assert_eq!(missed(ear), [], "nothing was missed at the start");
        for expected in &sent {
            assert_eq!(*ear.deltas.recv().await.unwrap(), *std::slice::from_ref(expected));
        }
        assert!(ear.deltas.is_empty());
    }
}

pub(crate) async fn a_late_joiner_gets_the_whole_step_so_far(home: &Home) {
    let (run, space) = (RunId::mint(), SpaceId::mint());
    let feed = home.store.feed();
    let call = CallId::mint();
    let input = |text: &str| Piece::ToolInputDelta {
        call: call.clone(),
        tool: cast::tool(),
        visibility: Visibility::Private,
        text: Arc::from(text),
    };
    let start =
        Piece::ToolInputStart { call: call.clone(), tool: cast::tool(), visibility: Visibility::Private };
    let reasoning = |text: &str| Piece::ReasoningDelta { part: 1, public: true, text: Arc::from(text) };
    let pieces = [
        Piece::TextStart { part: 0 },
        text("Hel"),
        text("lo"),
        Piece::TextEnd { part: 0 },
        reasoning("so"),
        reasoning(" far"),
        start.clone(),
        input("{\"a\""),
        input(":1}"),
    ];
    for (offset, piece) in (0..).zip(pieces) {
        feed.deltas(Some(&space), vec![delta(&run, 2, 1, offset, piece)]);
    }
    let whole = [(
        2,
        1,
        9,
        vec![
            Piece::TextStart { part: 0 },
            text("Hello"),
            Piece::TextEnd { part: 0 },
            reasoning("so far"),
            start,
            input("{\"a\":1}"),
        ],
    )];
    let mut late = feed.join_run(&run);
    assert_eq!(missed(&late), whole);
    assert_eq!(missed(&feed.join_space(&space)), whole);
    // It goes on without a gap.
    feed.deltas(Some(&space), vec![delta(&run, 2, 1, 9, text("!"))]);
    assert_eq!(late.deltas.recv().await.unwrap()[0].offset, 9);

    // A new attempt starts over.
    feed.deltas(Some(&space), vec![delta(&run, 2, 2, 0, text("Again"))]);
    let again = [(2, 2, 1, vec![text("Again")])];
    assert_eq!(missed(&feed.join_run(&run)), again);
    assert_eq!(missed(&feed.join_space(&space)), again);
}

pub(crate) async fn the_step_so_far_is_gone_when_its_reply_commits(home: &Home) {
    let (node, space) = (owner("a"), with_space(home).await.1);
    let line = Line::running(home, Some(&space), &node).await;
    let (run, feed) = (line.run.id.clone(), home.store.feed());
    feed.deltas(Some(&space), vec![delta(&run, 1, 1, 0, text("Let me look."))]);
    // A commit that is not the reply leaves it.
    line.fact(vec![cast::news()], Waking::No).await;
    assert_eq!(missed(&feed.join_run(&run)).len(), 1);

    let reply = vec![cast::replied(&run, 1, &[])];
    line.append(&node, 1, 3, reply, cast::going_on()).await.unwrap();
    assert_eq!(missed(&feed.join_run(&run)), []);
    assert_eq!(missed(&feed.join_space(&space)), []);
    assert!(feed.is_empty(), "nobody listens and nothing streams");

    // The next step is not taken for the old one.
    feed.deltas(Some(&space), vec![delta(&run, 2, 1, 0, text("Found."))]);
    line.fact(vec![cast::news()], Waking::No).await;
    assert_eq!(missed(&feed.join_run(&run)), [(2, 1, 1, vec![text("Found.")])]);
}

pub(crate) async fn the_step_so_far_is_gone_when_its_worker_gives_up(home: &Home) {
    let (run, space, feed) = (RunId::mint(), SpaceId::mint(), home.store.feed());
    feed.deltas(Some(&space), vec![delta(&run, 1, 1, 0, text("Le"))]);
    assert_eq!(feed.len(), 2);
    feed.forget(&run, Some(&space));
    assert_eq!(missed(&feed.join_space(&space)), []);
    assert!(feed.is_empty());
}

/// Invariant 10: a waiting run costs no memory.
pub(crate) async fn hubs_vanish_when_nobody_listens(home: &Home) {
    let (node, space) = (owner("a"), with_space(home).await.1);
    let feed = home.store.feed();
    let (line, _) = Line::parked(home, Some(&space), &node).await;
    assert!(feed.is_empty(), "a commit alone makes no hub");
    let (first, second) = (feed.join_run(&line.run.id), feed.watch_run(&line.run.id));
    let third = feed.join_space(&space);
    assert_eq!(feed.len(), 2);
    drop(first);
    assert_eq!(feed.len(), 2, "the worker still listens");
    drop(second);
    assert_eq!(feed.len(), 1);
    drop(third);
    assert!(feed.is_empty());
}

/// A reader that is too slow is told so and joins again: nothing is lost.
pub(crate) async fn a_slow_reader_is_told_and_joins_again(home: &Home) {
    let (run, feed) = (RunId::mint(), home.store.feed());
    let mut slow = feed.join_run(&run);
    let letters: String = (0..3000).map(|_| 'x').collect();
    for (offset, letter) in (0..).zip(letters.chars()) {
        feed.deltas(None, vec![delta(&run, 1, 1, offset, text(&letter.to_string()))]);
    }
    let lagged = slow.deltas.recv().await;
    assert!(matches!(lagged, Err(tokio::sync::broadcast::error::RecvError::Lagged(_))), "{lagged:?}");
    let again = feed.join_run(&run);
    assert_eq!(missed(&again), [(1, 1, 3000, vec![text(&letters)])]);
}
