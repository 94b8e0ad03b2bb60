//! Which story is killed at which named place, at least: a place that no story
//! comes by would be walked in vain, and nobody would hear of it.

use toolyard_store::failpoint::NAMES;

use crate::story::Story;

/// Who must be killed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Story(Story),
    /// `migrate.rs`: no run is under way there.
    Migration,
}

const KILLED: &[(&str, By)] = &[
    ("start.before_commit", By::Story(Story::Text)),
    ("start.after_commit", By::Story(Story::Text)),
    ("claim.after_commit", By::Story(Story::Queued)),
    ("model.before_call", By::Story(Story::Text)),
    ("model.first_byte", By::Story(Story::Text)),
    ("model.after_stream", By::Story(Story::Text)),
    ("append.before_commit", By::Story(Story::Text)),
    ("append.after_commit", By::Story(Story::Text)),
    ("feed.after_publish", By::Story(Story::Text)),
    ("tool.before_start", By::Story(Story::GatewayTool)),
    ("tool.after_effect", By::Story(Story::GatewayTool)),
    ("tool.before_outcome_commit", By::Story(Story::GatewayTool)),
    ("submit.before_commit", By::Story(Story::ClientTool)),
    ("submit.after_commit", By::Story(Story::ClientTool)),
    ("pause.after_commit", By::Story(Story::ClientTool)),
    ("expiry.after_commit", By::Story(Story::Expiry)),
    ("cancel.after_commit", By::Story(Story::Cancel)),
    ("finish.before_commit", By::Story(Story::Text)),
    ("finish.after_commit", By::Story(Story::Text)),
    ("release.after_commit", By::Story(Story::Stop)),
    ("renew.before", By::Story(Story::Text)),
    ("group.mid_savepoint", By::Story(Story::Text)),
    ("group.before_commit", By::Story(Story::Text)),
    ("group.after_commit", By::Story(Story::Text)),
    ("migrate.mid", By::Migration),
];

/// One process has the file: it needs no heartbeat.
const NOT_ON_SQLITE: &[&str] = &["renew.before"];
/// Every transaction is a commit of its own: none has a savepoint within a group.
const NOT_ON_POSTGRES: &[&str] = &["group.mid_savepoint"];

/// Where this story must have been killed, on this database.
pub(crate) fn must_kill(story: Story, on_postgres: bool) -> Vec<&'static str> {
    let absent = if on_postgres { NOT_ON_POSTGRES } else { NOT_ON_SQLITE };
    let of_story = KILLED.iter().filter(|(name, by)| *by == By::Story(story) && !absent.contains(name));
    of_story.map(|(name, _)| *name).collect()
}

impl Story {
    /// The places that the story is walked along. The first ones come by all of
    /// them; the later ones add what those do not meet.
    pub(crate) fn places(self) -> &'static [&'static str] {
        match self {
            Self::Text
            | Self::Spoken
            | Self::ClientTool
            | Self::GatewayTool
            | Self::Approval
            | Self::Goals
            | Self::Plan => NAMES,
            Self::Repeatable => &[
                "tool.before_start",
                "tool.after_effect",
                "tool.before_outcome_commit",
                "append.after_commit",
            ],
            Self::Cancel => &[
                "cancel.after_commit",
                "append.before_commit",
                "finish.before_commit",
                "finish.after_commit",
            ],
            Self::Expiry => &["expiry.after_commit", "finish.before_commit"],
            Self::Queued => &["claim.after_commit", "finish.after_commit"],
            Self::Stop => &["append.before_commit", "release.after_commit"],
        }
    }
}

impl Story {
    /// More stories than its walk tells.
    pub(crate) fn room(self) -> usize {
        if self.places() == NAMES { 250 } else { 40 }
    }
}

#[test]
fn d1_every_named_place_has_a_story_that_dies_there() {
    let killed: Vec<&str> = KILLED.iter().map(|(name, _)| *name).collect();
    assert_eq!(killed, NAMES);
    for (name, by) in KILLED {
        if let By::Story(story) = by {
            assert!(story.places().contains(name), "{story:?} is not walked along {name}");
        }
    }
}
