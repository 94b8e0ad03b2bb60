//! Runs one job in one room: calls the function, turns the loop until its
//! promise settles, and writes the result down.

use std::io;
use std::time::{Duration, Instant};

use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Promise, Value};
use serde_json::value::RawValue;

use super::fault::explain;
use super::room::Room;
use super::{function, pipe};
use crate::sandbox::error::SandboxError;
use crate::sandbox::job::ConsoleLine;
use crate::sandbox::wire::{Given, Order, Task};

/// How a job ended.
pub(super) struct Performance {
    pub(super) outcome: Result<Given, SandboxError>,
    pub(super) console: Vec<ConsoleLine>,
    pub(super) took: Duration,
}

/// Runs it. An error here is the pipe's, not the code's.
pub(super) fn perform(room: &Room, task: &Task) -> io::Result<Performance> {
    let started = Instant::now();
    room.runtime.set_memory_limit(task.limits.memory_bytes);
    room.runtime.set_max_stack_size(task.limits.stack_bytes);
    room.state.begin(task.limits, task.host);
    let outcome = room.context.with(|ctx| act(&ctx, room, task))?;
    Ok(Performance { outcome, console: room.state.take_console(), took: started.elapsed() })
}

fn act(ctx: &Ctx<'_>, room: &Room, task: &Task) -> io::Result<Result<Given, SandboxError>> {
    if task.host
        && let Err(error) = open(ctx, room)
    {
        return Ok(Err(explain(ctx, &room.state, error)));
    }
    let (function, args) = match function::build(ctx, task) {
        Ok(built) => built,
        Err(error) => return Ok(Err(syntax(explain(ctx, &room.state, error)))),
    };
    let bounds = Bounds { finite: task.finite, result_bytes: task.limits.result_bytes };
    finish(ctx, room, function.call_arg(args), bounds)
}

/// What a result must be.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) finite: bool,
    pub(super) result_bytes: usize,
}

/// Waits for a promise and writes down what it gives.
pub(super) fn finish<'js>(
    ctx: &Ctx<'js>,
    room: &Room,
    promise: rquickjs::Result<Promise<'js>>,
    bounds: Bounds,
) -> io::Result<Result<Given, SandboxError>> {
    let promise = match promise {
        Ok(promise) => promise,
        Err(error) => return Ok(Err(explain(ctx, &room.state, error))),
    };
    let settled = match settle(ctx, room, &promise)? {
        Ok(()) => promise.result::<Value>().unwrap_or(Err(rquickjs::Error::WouldBlock)),
        Err(error) => return Ok(Err(error)),
    };
    let given = settled.map_err(|error| explain(ctx, &room.state, error));
    Ok(given.and_then(|value| write_down(ctx, room, bounds, value)))
}

/// Lets the code ask questions.
pub(super) fn open(ctx: &Ctx<'_>, room: &Room) -> rquickjs::Result<()> {
    room.doors.open.clone().restore(ctx)?.call::<_, ()>(())
}

/// Before the function exists, the only thing that can throw is its text.
pub(super) fn syntax(error: SandboxError) -> SandboxError {
    match error {
        SandboxError::Threw { name, message } if name == "SyntaxError" => SandboxError::Syntax { message },
        other => other,
    }
}

/// Turns the loop: jobs, then timers and answers, until the promise settles.
fn settle(ctx: &Ctx<'_>, room: &Room, promise: &Promise<'_>) -> io::Result<Result<(), SandboxError>> {
    let state = &room.state;
    loop {
        // What the code left running when its promise settled is nobody's business.
        let pending = || promise.state() == PromiseState::Pending;
        while pending() && !state.must_stop() && ctx.execute_pending_job() {}
        if let Some(broken) = state.broken() {
            return Ok(Err(broken));
        }
        if promise.state() != PromiseState::Pending {
            return Ok(Ok(()));
        }
        if let Some(id) = state.due_timer() {
            run(ctx, room, |ctx| room.doors.fire.clone().restore(ctx)?.call((id,)));
            continue;
        }
        let until_timer = state.next_timer().map(|at| at.saturating_duration_since(Instant::now()));
        let wait = match (until_timer, state.has_open_asks()) {
            (None, false) => return Ok(Err(SandboxError::NeverSettles)),
            // Nothing can happen before the deadline: waiting for it helps nobody.
            (Some(time), false) if time > state.left() => {
                return Ok(Err(SandboxError::TimedOut { limit_ms: state.limits().time_ms }));
            }
            (time, _) => time.unwrap_or(Duration::MAX).min(state.left()),
        };
        if pipe::arrives_within(wait)? {
            hear(ctx, room)?;
        }
    }
}

/// Takes an answer to a question.
fn hear(ctx: &Ctx<'_>, room: &Room) -> io::Result<()> {
    match pipe::receive()? {
        Some(Order::Told { id, answer }) => {
            room.state.close_ask();
            let (good, text) = match &answer {
                Ok(value) => (true, value.get()),
                Err(why) => (false, why.as_str()),
            };
            run(ctx, room, |ctx| room.doors.told.clone().restore(ctx)?.call((id, good, text)));
            Ok(())
        }
        Some(Order::Run(_) | Order::Sit(_) | Order::Call { .. } | Order::Leave) => {
            Err(io::Error::other("a second job while one runs"))
        }
        // The gateway is gone.
        None => std::process::exit(0),
    }
}

/// Runs a callback. What it throws goes to the console, as in a browser.
fn run<'js>(ctx: &Ctx<'js>, room: &Room, call: impl FnOnce(&Ctx<'js>) -> rquickjs::Result<()>) {
    if let Err(error) = call(ctx)
        && room.state.broken().is_none()
    {
        let error = explain(ctx, &room.state, error);
        match error {
            SandboxError::Threw { .. } => {
                room.state.write(crate::sandbox::job::Level::Error, format!("Uncaught {error}"));
            }
            limit => room.state.break_limit(limit),
        }
    }
}

fn write_down<'js>(
    ctx: &Ctx<'js>,
    room: &Room,
    bounds: Bounds,
    value: Value<'js>,
) -> Result<Given, SandboxError> {
    let limit_bytes = bounds.result_bytes;
    let too_large = SandboxError::ResultTooLarge { limit_bytes };
    let explained = |error| match explain(ctx, &room.state, error) {
        // The result itself fitted; what did not is its JSON.
        SandboxError::Memory { .. } => too_large.clone(),
        SandboxError::Threw { message, .. } => SandboxError::NotJson { message },
        other => other,
    };
    if let Some(lost) = lost(&value) {
        return Ok(Given { value: RawValue::NULL.to_owned(), lost: Some(lost) });
    }
    let text = if bounds.finite {
        let check: Function = ctx.eval(FINITE).map_err(explained)?;
        ctx.json_stringify_replacer(value, check)
    } else {
        ctx.json_stringify(value)
    };
    let Some(text) = text.map_err(explained)? else {
        let lost = Some("a value without JSON".to_owned());
        return Ok(Given { value: RawValue::NULL.to_owned(), lost });
    };
    let text = text.to_string().map_err(explained)?;
    if text.len() > limit_bytes {
        return Err(too_large);
    }
    let value = RawValue::from_string(text);
    Ok(Given {
        value: value.map_err(|error| SandboxError::NotJson { message: error.to_string() })?,
        lost: None,
    })
}

/// JSON would write `null`.
const FINITE: &str = "(function (key, value) {
    if (typeof value === 'number' && value - value !== 0) {
        throw new RangeError((key === '' ? 'it' : '\"' + key + '\"') + ' is ' + value);
    }
    return value;
})";

/// The name of a value that JSON does not know.
fn lost(value: &Value<'_>) -> Option<String> {
    if value.is_undefined() {
        return Some("undefined".to_owned());
    }
    if value.is_function() {
        return Some("a function".to_owned());
    }
    if value.is_symbol() {
        return Some("a symbol".to_owned());
    }
    let number = value.as_number().filter(|number| !number.is_finite())?;
    Some(
        if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned(),
    )
}
