//! Random interleavings of replies, tools, people, the clock and crashes.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::world::{Action, Bug, Checked, World};

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => Just(Action::Work),
        8 => any::<u16>().prop_map(Action::Land),
        5 => any::<u16>().prop_map(Action::Answer),
        2 => any::<u16>().prop_map(Action::Expire),
        2 => any::<u16>().prop_map(Action::Stale),
        1 => any::<bool>().prop_map(|interrupt| Action::Queue { interrupt }),
        1 => Just(Action::Supersede),
        1 => prop_oneof![4 => Just(Action::Work), 1 => Just(Action::Cancel)],
        1 => Just(Action::Crash),
    ]
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 10..90)
}

fn play(actions: &[Action], bug: Bug) -> (World, Checked) {
    let mut world = World::new(bug);
    let played = actions.iter().try_for_each(|a| world.happen(*a)).and_then(|()| world.end());
    (world, played)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn inv_a_b_d_f_every_interleaving_keeps_every_rule(actions in actions()) {
        let (world, played) = play(&actions, Bug::None);
        let log: Vec<_> = world.story.log.iter().map(|e| e.kind()).collect();
        prop_assert!(played.is_ok(), "{}\n{log:?}", played.unwrap_err());
    }

}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// `fold` takes any event in any state, in any order.
    #[test]
    fn a_shuffled_log_never_stops_a_fold(actions in actions(), seed in any::<u64>()) {
        let (world, _) = play(&actions, Bug::None);
        let mut log = world.story.log;
        let mut state = seed;
        for i in (1..log.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            log.swap(i, (state >> 33) as usize % (i + 1));
        }
        let mut run = toolyard_engine::Run::new(world.story.run.id().clone());
        for event in &log {
            run.fold(event);
            let _ = (run.due(), run.status(), run.open_waits());
            let _ = run.next(crate::fixture::NOW, crate::fixture::recovered());
        }
    }
}

/// Fixed random plays: the same on every machine.
fn fixed_plays(n: usize) -> Vec<Vec<Action>> {
    let mut runner = TestRunner::deterministic();
    let strategy = actions();
    (0..n).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn complaints(bug: Bug) -> Vec<String> {
    fixed_plays(300).iter().filter_map(|a| play(a, bug).1.err()).collect()
}

#[test]
fn the_plays_reach_every_kind_of_event_that_the_engine_writes() {
    let mut seen = std::collections::BTreeSet::new();
    for actions in fixed_plays(300) {
        let (world, played) = play(&actions, Bug::None);
        assert_eq!(played, Ok(()));
        seen.extend(world.story.log.iter().map(|e| e.kind()));
    }
    let wanted = [
        "Answered",
        "Asked",
        "CancelRequested",
        "ChildStarted",
        "MessageQueued",
        "MessageTaken",
        "ModelReplied",
        "RunCreated",
        "RunFinished",
        "RunPaused",
        "RunStarted",
        "StepRestarted",
        "ToolCallRequested",
        "ToolReturned",
    ];
    assert!(seen.iter().eq(wanted.iter()), "{seen:?}");
}

#[test]
fn seeded_bug_a_store_that_takes_a_second_result_is_caught() {
    let found = complaints(Bug::SecondResult);
    assert!(found.iter().any(|c| c == "Inv-A: a call ended twice"), "{found:?}");
}

#[test]
fn seeded_bug_a_worker_that_skips_the_claim_after_a_crash_is_caught() {
    let found = complaints(Bug::NoClaim);
    assert!(found.iter().any(|c| c.starts_with("Inv-B: Tool")), "{found:?}");
}

#[test]
fn seeded_bug_a_worker_that_loses_a_fact_is_caught() {
    let found = complaints(Bug::LostFact);
    assert!(found.iter().any(|c| c == "the state is not the fold of the log"), "{found:?}");
}

#[test]
fn seeded_bug_an_event_after_the_end_is_caught() {
    let found = complaints(Bug::AfterTheEnd);
    assert!(found.iter().any(|c| c == "an event follows RunFinished"), "{found:?}");
}

#[test]
fn seeded_bug_a_pause_that_is_not_written_is_caught() {
    let found = complaints(Bug::NoPause);
    assert!(found.iter().any(|c| c == "parked without RunPaused"), "{found:?}");
}
