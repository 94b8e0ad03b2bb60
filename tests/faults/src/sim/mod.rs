//! D18: the engine, the real store on SQLite, two nodes, clients, a far side and
//! a clock, in one thread. The seed decides everything: who acts next, who dies
//! or stands still, which commit is refused, which answer is lost. The same seed
//! gives the same history, byte for byte.

mod cast;
mod clients;
mod leases;
mod node;
mod world;

use crate::history::History;
use world::World;

/// A mistake that the checker must find in the history it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bug {
    #[default]
    None,
    /// A node that woke up too late writes and acts as if the run were its own.
    NoFencing,
    /// What was running when its node died is simply run again.
    BlindRepeat,
    /// A tool starts before the commit that asks for it.
    ActFirst,
    /// A client is told "taken" before the commit.
    AnswerFirst,
    /// A second result for a call is taken too.
    SecondResult,
    /// A fact does not wake the run that waits for it.
    NoWake,
    /// A second cancel is a second event.
    SecondCancel,
    /// A result lands on another call than the one it is for.
    SwappedResult,
    /// What somebody said no to happens all the same.
    IgnoredNo,
    /// A tool says "done" and has done nothing.
    SkippedEffect,
    /// A call is given up as uncertain although its answer came.
    EarlyDoubt,
    /// A reader misses an event now and then.
    MissedEvent,
    /// A request is answered with a run that was never made.
    LostRun,
}

impl Bug {
    pub const ALL: [Self; 13] = [
        Self::NoFencing,
        Self::BlindRepeat,
        Self::ActFirst,
        Self::AnswerFirst,
        Self::SecondResult,
        Self::NoWake,
        Self::SecondCancel,
        Self::SwappedResult,
        Self::IgnoredNo,
        Self::SkippedEffect,
        Self::EarlyDoubt,
        Self::MissedEvent,
        Self::LostRun,
    ];

    /// By its name, as a stored seed says it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::None]).find(|bug| format!("{bug:?}") == name)
    }
}

/// What one play was like.
#[derive(Debug, Clone)]
pub struct Played {
    pub history: History,
    pub steps: usize,
}

/// Plays a seed: so many random steps, then everything is mended and must end.
pub fn play(seed: u64, steps: usize, bug: Bug) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a thread");
    runtime.block_on(async {
        let mut world = World::new(seed, bug).await;
        for _ in 0..steps {
            world.step().await;
        }
        let more = world.drain().await;
        Played { history: world.told().await, steps: steps + more }
    })
}
