//! D1: kill -9 anywhere loses nothing and doubles nothing. The other files:
//! D2 (`faults`, `hang`), D4 (`clocks`) and D12 (`full_disk`), which need the same
//! build, and D1 for what is to go instead of to stay (`removals`), for what is
//! to leave the gateway (`deliveries`) and for a database of an older schema
//! (`migrate`).
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
mod deliveries;
mod faults;
mod full_disk;
mod gateway;
mod hang;
mod hooked;
mod listener;
mod migrate;
mod places;
mod receivers;
mod removals;
mod scenery;
mod story;
mod world;

use std::time::Duration;

use check::Doubt;
use database::Database;
use story::{Ended, Story};
use world::World;

/// How often one place may be passed in a story before the test gives up.
const MOST: u32 = 40;

async fn at_every_place(story: Story, database: fn() -> Database) {
    let world = World::for_story(database(), story).await;
    let mut walk = Walk::of(story, &world);
    for name in story.places() {
        for nth in 1..=MOST {
            let ended = walk.die_at(&world, name, nth).await;
            if ended.deaths == 0 {
                break;
            }
            assert!(nth < MOST, "{name} is passed without end");
        }
    }
    walk.over();
}

/// For stories that come by their places as often whenever they are told: the
/// first one, without a death, counts.
async fn at_counted_places(story: Story, database: fn() -> Database) {
    let world = World::for_story(database(), story).await;
    let clean = story.run(&world, Some(places::NOWHERE)).await;
    check::outcome(story, Doubt::No, &clean, "no place");
    let mut walk = Walk::of(story, &world);
    for name in story.places() {
        for nth in 1..=places::passes(&clean.log, name) {
            let ended = walk.die_at(&world, name, nth).await;
            if story == Story::Hooked {
                hooked::same(&clean, &ended, &format!("{name}:kill:{nth}"));
            }
        }
    }
    walk.over();
}

/// What a story was killed at so far.
struct Walk {
    story: Story,
    deaths: u32,
    recoveries: Vec<Duration>,
    /// Where it must still be killed.
    missing: Vec<&'static str>,
}

impl Walk {
    fn of(story: Story, world: &World) -> Self {
        let missing = places::must_kill(story, world.database.url.is_some());
        Self { story, deaths: 0, recoveries: Vec::new(), missing }
    }

    async fn die_at(&mut self, world: &World, name: &str, nth: u32) -> Ended {
        let place = format!("{name}:kill:{nth}");
        let ended = self.story.run(world, Some(&place)).await;
        check::outcome(self.story, Doubt::of_death(self.story, name, ended.deaths), &ended, &place);
        self.recoveries.extend(ended.recovery);
        self.deaths += ended.deaths;
        if ended.deaths > 0 {
            self.missing.retain(|wanted| *wanted != name);
        }
        ended
    }

    fn over(mut self) {
        gateway::forget_binary();
        // A matrix that never kills proves nothing.
        let (story, deaths) = (self.story, self.deaths);
        assert!(self.missing.is_empty(), "{story:?} never died at {:?}", self.missing);
        assert!(deaths >= story.places().len().min(15).try_into().unwrap(), "only {deaths} deaths");
        self.recoveries.sort_unstable();
        let at = |percent: usize| self.recoveries[(self.recoveries.len() - 1) * percent / 100];
        println!(
            "{story:?}: {deaths} deaths, nothing lost, nothing doubled; from the new start to the run's end {:.0?} (p50), {:.0?} (p99)",
            at(50),
            at(99)
        );
    }
}

macro_rules! stories {
    ($walk:ident: $($name:ident: $story:ident),* $(,)?) => {
        mod sqlite {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                $walk(Story::$story, Database::sqlite).await;
            })*
        }
        mod postgres {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                $walk(Story::$story, Database::postgres).await;
            })*
        }
    };
}

stories! {
    at_every_place:
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

mod counted {
    use super::*;

    stories! {
        at_counted_places:
        d1_an_mcp_call_is_in_doubt_exactly_where_it_must_be_over_every_death: McpCall,
        d1_an_mcp_call_that_may_be_repeated_is_never_in_doubt: McpRepeatable,
        d1_a_task_of_an_mcp_server_is_followed_over_every_death: McpTask,
        d1_what_plugins_make_of_a_run_is_the_same_over_every_death: Hooked,
    }
}
