//! The native dialect: REST views and server-sent events in the words of rows
//! G31 to G41.
//!
//! One durable event is one frame whose id is its seq ([`frame`]); streaming
//! pieces have no id ([`delta_frame`]); lists show the same bytes as streams
//! ([`event_view`]). Each function takes the [`toolyard_protocol::Viewer`] and
//! filters by itself, so no caller can forget to.
//!
//! A run's stream is the run's log. A space's stream is the logs of its runs
//! and its messages in one order: the id is the place in the space, and every
//! payload names `smartSpaceId`.

mod catalog;
mod delta;
mod event;
mod frame;
mod partial;
mod parts;
mod reset;
mod so_far;
pub mod socket;
mod view;
pub mod wire;

pub use catalog::{FrameKind, FrameVisitor, Presence, visit_frames};
pub use delta::{delta_frame, space_delta_frame};
pub use event::{event_view, frame, space_frame};
pub use frame::Frame;
pub use partial::{InputsSoFar, PARTIAL_INPUT_BYTES};
pub use parts::{PartView, part_views};
pub use reset::{RunSnapshot, SpaceSnapshot, reset_frame, space_reset_frame};
pub use so_far::{space_step_so_far, step_so_far};
pub use view::{MessageView, RunFacts, RunView, WaitView, message_frame, message_view, run_view, wait_view};
