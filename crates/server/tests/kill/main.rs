//! D1: kill -9 anywhere loses nothing and doubles nothing. The other files:
//! D2 (`faults`, `hang`), D4 (`clocks`) and D12 (`full_disk`), which need the same
//! build, and D1 for what is to go instead of to stay (`removals`) and for a
//! database of an older schema (`migrate`).
//!
//! Each story runs the real binary with one named place armed, again and again:
//! it dies there the first time it comes by, then the second time, and so on,
//! until a whole story passes without reaching the place. After each death a
//! new process takes over and the client simply goes on. Then the log, the
//! ledger and the recorder's file are checked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests start processes and clients as they like")]

mod check;
mod clocks;
mod database;
mod faults;
mod full_disk;
mod gateway;
mod hang;
mod listener;
mod migrate;
mod places;
mod removals;
mod story;
mod world;

use check::Doubt;
use database::Database;
use story::Story;
use world::World;

/// How often one place may be passed in a story before the test gives up.
const MOST: u32 = 40;

async fn at_every_place(story: Story, database: fn() -> Database) {
    let world = World::for_stories(database(), story.room()).await;
    let mut deaths = 0;
    let mut recoveries = Vec::new();
    let mut missing = places::must_kill(story, world.database.url.is_some());
    for name in story.places() {
        for nth in 1..=MOST {
            let place = format!("{name}:kill:{nth}");
            let ended = story.run(&world, Some(&place)).await;
            check::outcome(story, Doubt::of_death(name, ended.deaths), &ended, &place);
            recoveries.extend(ended.recovery);
            if ended.deaths == 0 {
                break;
            }
            deaths += ended.deaths;
            missing.retain(|wanted| wanted != name);
            assert!(nth < MOST, "{place} is passed without end");
        }
    }
    gateway::forget_binary();
    // A matrix that never kills proves nothing.
    assert!(missing.is_empty(), "{story:?} never died at {missing:?}");
    assert!(deaths >= story.places().len().min(15).try_into().unwrap(), "only {deaths} deaths");
    recoveries.sort_unstable();
    let at = |percent: usize| recoveries[(recoveries.len() - 1) * percent / 100];
    println!(
        "{story:?}: {deaths} deaths, nothing lost, nothing doubled; from the new start to the run's end {:.0?} (p50), {:.0?} (p99)",
        at(50),
        at(99)
    );
}

macro_rules! stories {
    ($($name:ident: $story:ident),* $(,)?) => {
        mod sqlite {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                at_every_place(Story::$story, Database::sqlite).await;
            })*
        }
        mod postgres {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                at_every_place(Story::$story, Database::postgres).await;
            })*
        }
    };
}

stories! {
    d1_a_text_run_survives_every_death: Text,
    d1_a_client_tool_run_survives_every_death: ClientTool,
    d1_a_gateway_tool_run_survives_every_death: GatewayTool,
    d1_an_approval_survives_every_death: Approval,
    d1_a_prebuilt_tool_works_exactly_once_over_every_death: Goals,
    d1_a_due_plan_starts_one_run_over_every_death: Plan,
    d1_a_gateway_tool_that_may_be_repeated_is_never_in_doubt: Repeatable,
    d1_a_cancel_stops_its_run_once_over_every_death: Cancel,
    d1_an_expiry_ends_its_call_once_over_every_death: Expiry,
    d1_a_queued_run_begins_over_every_death: Queued,
    d1_a_run_that_a_stop_hands_back_goes_on_over_every_death: Stop,
}
