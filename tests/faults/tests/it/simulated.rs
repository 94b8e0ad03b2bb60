//! D18: plays by seed.

use toolyard_faults::check::{Promise, check};
use toolyard_faults::sim::{Bug, play};

const STEPS: usize = 400;

#[test]
fn d18_every_promise_holds_in_simulated_plays() {
    for seed in 1..=40 {
        let played = play(seed, STEPS, Bug::None);
        let found = check(&played.history);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
    }
}

#[test]
fn d18_a_seed_gives_the_same_history_again() {
    assert_eq!(play(7, STEPS, Bug::None).history, play(7, STEPS, Bug::None).history);
}

/// Each bug, and the promise that it breaks.
#[test]
fn d18_every_seeded_bug_is_found() {
    for bug in Bug::ALL {
        let wanted = match bug {
            Bug::None => continue,
            Bug::NoFencing | Bug::BlindRepeat => Promise::DoubledEffect,
            Bug::ActFirst => Promise::UnloggedEffect,
            Bug::AnswerFirst | Bug::SecondCancel => Promise::LostAnswer,
            Bug::SecondResult => Promise::SecondOutcome,
            Bug::NoWake => Promise::Unfinished,
        };
        let mut seeds = 1..=40;
        let found =
            seeds.find(|seed| check(&play(*seed, STEPS, bug).history).iter().any(|c| c.promise == wanted));
        assert!(found.is_some(), "no play finds {bug:?}");
    }
}
