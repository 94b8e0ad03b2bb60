//! A fresh engine with everything that code finds in it, made ready before the
//! job arrives, used once.

use std::rc::Rc;

use rquickjs::{CatchResultExt, Context, Ctx, Function, Object, Persistent, Runtime};
use toolyard_protocol::limits::SANDBOX_STACK_BYTES;

use super::native;
use super::state::State;

/// What stands in the global object of every call.
const BASE: &str = include_str!("shim/base.js");

/// The engine. Fields are dropped in this order: what it holds, then itself.
pub(super) struct Room {
    pub(super) doors: Doors,
    pub(super) state: Rc<State>,
    pub(super) context: Context,
    pub(super) runtime: Runtime,
}

impl Room {
    pub(super) fn open() -> Result<Self, String> {
        let broken = |error: rquickjs::Error| error.to_string();
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_max_stack_size(SANDBOX_STACK_BYTES);
        let context = Context::full(&runtime).map_err(broken)?;
        let state = Rc::new(State::default());
        let watched = state.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
        let doors = context.with(|ctx| furnish(&ctx, &state))?;
        Ok(Self { doors, state, context, runtime })
    }
}

/// The ways in.
pub(super) struct Doors {
    /// A timer is due.
    pub(super) fire: Persistent<Function<'static>>,
    /// A question is answered.
    pub(super) told: Persistent<Function<'static>>,
    /// Lets the code ask questions.
    pub(super) open: Persistent<Function<'static>>,
}

/// Fills the global object.
fn furnish(ctx: &Ctx<'_>, state: &Rc<State>) -> Result<Doors, String> {
    let furnished = || -> rquickjs::Result<Doors> {
        let base: Function = ctx.eval(BASE)?;
        let doors: Object = base.call((native::object(ctx, state)?,))?;
        let save = |name| Ok::<_, rquickjs::Error>(Persistent::save(ctx, doors.get::<_, Function>(name)?));
        Ok(Doors { fire: save("fire")?, told: save("told")?, open: save("open")? })
    };
    furnished().catch(ctx).map_err(|error| error.to_string())
}
