//! A routed call as an event. The worker decided; this only writes it down.

use toolyard_protocol::event::{Asked, Parked, ToolCallRequested, ToolReturned};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{Event, Guarded, WaitId};

use crate::input::{ParkKind, RoutedCall, Verdict};

/// The one event that says where a call goes.
pub(super) fn route(step: u32, round: u32, c: RoutedCall) -> Event {
    let fingerprint = c.fingerprint.map_or(Guarded::Hidden, Guarded::Shown);
    match c.verdict {
        Verdict::Ask { kind, expires, payload, state } => {
            let kind = WaitKind::from(kind);
            Asked {
                wait: WaitId::of(kind, &c.call, round),
                kind,
                step,
                call: c.call,
                tool: c.tool,
                place: c.place,
                risk: c.risk,
                visibility: c.visibility,
                rule: c.rule,
                expires,
                payload: Guarded::Shown(payload),
                fingerprint,
                state: state.map_or(Guarded::Hidden, Guarded::Shown),
            }
            .into()
        }
        Verdict::Refuse(outcome) => {
            ToolReturned::new(c.call, c.tool, c.visibility, outcome, Actor::Gateway {}).into()
        }
        verdict @ (Verdict::Run | Verdict::Park { .. }) => {
            let (wait, expires) = match verdict {
                Verdict::Park { kind, expires, payload } => {
                    let rule = match kind {
                        ParkKind::Client => c.rule,
                        // Nobody outside ends a timer.
                        ParkKind::Timer => AnswerRule::Gateway {},
                    };
                    let kind = WaitKind::from(kind);
                    let wait = WaitId::of(kind, &c.call, 0);
                    let payload = payload.map_or(Guarded::Hidden, Guarded::Shown);
                    (Some(Parked { wait, kind, rule, payload }), expires)
                }
                Verdict::Run | Verdict::Ask { .. } | Verdict::Refuse(_) => (None, None),
            };
            ToolCallRequested {
                step,
                call: c.call,
                tool: c.tool,
                place: c.place,
                risk: c.risk,
                visibility: c.visibility,
                idempotent: c.idempotent,
                wait,
                expires,
                untrusted: c.untrusted,
                args: Guarded::Shown(c.args),
                fingerprint,
            }
            .into()
        }
    }
}
