//! Which story is killed at which named place, at least: a place that no story
//! comes by would be walked in vain, and nobody would hear of it.

use toolyard_store::failpoint::{self, NAMES, OF_DELIVERIES, OF_HOOKS, OF_REMOVALS};

use crate::story::Story;

/// Who must be killed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Story(Story),
    /// `migrate.rs`: no run is under way there.
    Migration,
    /// `deliveries.rs`: what is killed is a delivery.
    Delivery,
    /// `removals.rs`: what is killed is a removal.
    Removal,
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
    ("hook.before_run", By::Story(Story::Hooked)),
    ("hook.after_run", By::Story(Story::Hooked)),
    ("mcp.before_call", By::Story(Story::McpCall)),
    ("mcp.after_answer", By::Story(Story::McpCall)),
    ("mcp.before_ticket_commit", By::Story(Story::McpTask)),
    ("mcp.after_ticket_commit", By::Story(Story::McpTask)),
    ("file.before_commit", By::Story(Story::McpCall)),
    ("file.after_commit", By::Story(Story::McpCall)),
    ("take.before_commit", By::Delivery),
    ("take.after_commit", By::Delivery),
    ("delivery.before_attempt", By::Delivery),
    ("delivery.after_attempt", By::Delivery),
    ("settle.before_commit", By::Delivery),
    ("settle.after_commit", By::Delivery),
    ("removal.after_commit", By::Removal),
    ("retire.after_commit", By::Removal),
    ("sweep.after_commit", By::Removal),
];

/// A place that is never reached so often: the gateway says what it passes.
pub(crate) const NOWHERE: &str = "migrate.mid:kill:999";

/// How often a gateway that was told to say it came by a place.
pub(crate) fn passes(log: &str, name: &str) -> u32 {
    log.matches(&format!("failpoint {name} is passed\n")).count().try_into().unwrap()
}

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
            Self::McpCall => &[
                "tool.before_start",
                "mcp.before_call",
                "mcp.after_answer",
                "file.before_commit",
                "file.after_commit",
                "tool.after_effect",
            ],
            Self::McpRepeatable => &["mcp.before_call", "mcp.after_answer", "file.after_commit"],
            Self::McpTask => &[
                "mcp.before_call",
                "mcp.before_ticket_commit",
                "mcp.after_ticket_commit",
                "mcp.after_answer",
            ],
            Self::Hooked => OF_HOOKS,
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
    assert_eq!(killed, failpoint::all().collect::<Vec<_>>());
    let by = |who: By| KILLED.iter().filter(move |(_, by)| *by == who).map(|(name, _)| *name);
    assert_eq!(by(By::Delivery).collect::<Vec<_>>(), OF_DELIVERIES, "deliveries.rs walks this list");
    assert_eq!(by(By::Removal).collect::<Vec<_>>(), OF_REMOVALS, "removals.rs walks these");
    for (name, by) in KILLED {
        if let By::Story(story) = by {
            assert!(story.places().contains(name), "{story:?} is not walked along {name}");
        }
    }
}
