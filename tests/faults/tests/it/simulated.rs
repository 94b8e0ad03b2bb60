//! D18: plays by seed.

use toolyard_faults::check::{Promise, check};
use toolyard_faults::seeds;
use toolyard_faults::sim::{Bug, play};

const STEPS: usize = 400;

#[test]
fn d18_every_promise_holds_in_simulated_plays() {
    for seed in 1..=40 {
        let played = play(seed, STEPS, Bug::None);
        let found = check(&played.history);
        assert!(found.is_empty(), "seed {seed}: {found:#?}\nkeep it: {}", seeds::how_to_keep(seed, STEPS));
    }
}

/// What once showed something is played again, as it is and with the bug that it
/// shows built in.
#[test]
fn d18_every_kept_seed_holds_and_still_shows_its_bug() {
    let kept = seeds::kept().unwrap();
    assert!(Bug::ALL.iter().all(|bug| kept.iter().any(|seed| seed.bug == *bug)), "{kept:#?}");
    for one in kept {
        let found = check(&play(one.seed, one.steps, Bug::None).history);
        assert!(found.is_empty(), "{one:?}: {found:#?}");
        if one.bug != Bug::None {
            let found = check(&play(one.seed, one.steps, one.bug).history);
            assert!(!found.is_empty(), "{one:?} shows nothing any more");
        }
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
            Bug::SwappedResult => Promise::WrongCall,
            Bug::IgnoredNo => Promise::UnapprovedEffect,
            Bug::SkippedEffect => Promise::LostEffect,
            Bug::EarlyDoubt => Promise::NeedlessDoubt,
            Bug::MissedEvent => Promise::Reader,
            Bug::LostRun => Promise::LostRequest,
        };
        let mut seeds = 1..=40;
        let found =
            seeds.find(|seed| check(&play(*seed, STEPS, bug).history).iter().any(|c| c.promise == wanted));
        assert!(found.is_some(), "no play finds {bug:?}");
        println!("{} {STEPS} {bug:?} {wanted:?}", found.unwrap_or_default());
    }
}
