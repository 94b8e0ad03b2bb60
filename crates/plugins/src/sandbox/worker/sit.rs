//! A sitting: several functions share one runtime and are called again and
//! again, until the gateway leaves or a limit is broken.

use std::collections::HashMap;
use std::io;
use std::time::Instant;

use rquickjs::function::Args;
use rquickjs::{Ctx, Function, Object, Persistent, Value};
use serde_json::value::RawValue;

use super::confine::Wear;
use super::fault::explain;
use super::perform::{self, Bounds, Performance};
use super::room::Room;
use super::{Look, function, pipe, report};
use crate::sandbox::error::SandboxError;
use crate::sandbox::wire::{Given, Order, Scene};

/// The process is looked at on every so many calls: a hook is called for each
/// piece of a text, and the look costs as much as a short hook. Its runtime has
/// limits of its own all the while.
const LOOK: u32 = 16;

/// What was made of a scene so far.
#[derive(Default)]
struct Made {
    driver: Option<Persistent<Function<'static>>>,
    functions: HashMap<String, Persistent<Function<'static>>>,
    /// What the prelude gives, in the order of its names.
    names: Vec<String>,
    given: Vec<Persistent<Value<'static>>>,
}

/// Answers calls. False when the gateway is gone.
pub(super) fn sit(room: &Room, scene: &Scene, wear: &Wear) -> io::Result<bool> {
    let mut made = Made::default();
    let mut calls = 0_u32;
    loop {
        match pipe::receive()? {
            Some(Order::Call { function, value }) => {
                let performance = play(room, scene, &mut made, &function, &value)?;
                let wear = Look { wear, close: calls.is_multiple_of(LOOK) };
                report(performance, wear, scene.limits.memory_bytes)?;
                calls = calls.wrapping_add(1);
            }
            Some(Order::Leave) => return Ok(true),
            Some(Order::Told { .. }) => {}
            Some(Order::Run(_) | Order::Sit(_)) => {
                return Err(io::Error::other("a second job while one sits"));
            }
            None => return Ok(false),
        }
    }
}

fn play(
    room: &Room,
    scene: &Scene,
    made: &mut Made,
    name: &str,
    value: &RawValue,
) -> io::Result<Performance> {
    let started = Instant::now();
    room.runtime.set_memory_limit(scene.limits.memory_bytes);
    room.runtime.set_max_stack_size(scene.limits.stack_bytes);
    room.state.begin(scene.limits, scene.host);
    let outcome = room.context.with(|ctx| act(&ctx, room, scene, made, name, value))?;
    Ok(Performance { outcome, console: room.state.take_console(), took: started.elapsed() })
}

fn act(
    ctx: &Ctx<'_>,
    room: &Room,
    scene: &Scene,
    made: &mut Made,
    name: &str,
    value: &RawValue,
) -> io::Result<Result<Given, SandboxError>> {
    let built = prepare(ctx, room, scene, made)
        .and_then(|()| scene.first.iter().try_for_each(|first| build(ctx, scene, made, first)))
        .and_then(|()| build(ctx, scene, made, name));
    if let Err(error) = built {
        return Ok(Err(perform::syntax(explain(ctx, &room.state, error))));
    }
    let promise = call(ctx, scene, made, name, value);
    let bounds = Bounds { finite: false, result_bytes: scene.limits.result_bytes };
    perform::finish(ctx, room, promise, bounds)
}

/// Once in a sitting: our own code.
fn prepare(ctx: &Ctx<'_>, room: &Room, scene: &Scene, made: &mut Made) -> rquickjs::Result<()> {
    if made.driver.is_some() {
        return Ok(());
    }
    if scene.host {
        perform::open(ctx, room)?;
    }
    if let Some(prelude) = &scene.prelude {
        let fields: Object = function::own(ctx, prelude)?.call(())?;
        for key in fields.keys::<String>() {
            let key = key?;
            made.given.push(Persistent::save(ctx, fields.get::<_, Value>(key.as_str())?));
            made.names.push(key);
        }
    }
    let driver: Function = function::own(ctx, &scene.driver)?.call(())?;
    made.driver = Some(Persistent::save(ctx, driver));
    Ok(())
}

/// Once for each function that is called.
fn build(ctx: &Ctx<'_>, scene: &Scene, made: &mut Made, name: &str) -> rquickjs::Result<()> {
    if made.functions.contains_key(name) {
        return Ok(());
    }
    let Some((_, parameters, code)) = scene.functions.iter().find(|(known, ..)| known == name) else {
        return Err(rquickjs::Exception::throw_reference(ctx, name));
    };
    let names: Vec<String> = parameters.iter().chain(&made.names).cloned().collect();
    let function = function::statements(ctx, &names, code)?;
    made.functions.insert(name.to_owned(), Persistent::save(ctx, function));
    Ok(())
}

fn call<'js>(
    ctx: &Ctx<'js>,
    scene: &Scene,
    made: &Made,
    name: &str,
    value: &RawValue,
) -> rquickjs::Result<rquickjs::Promise<'js>> {
    let restored = |saved: Option<&Persistent<Function<'static>>>| match saved {
        Some(saved) => saved.clone().restore(ctx),
        None => Err(rquickjs::Error::Unknown),
    };
    let (driver, function) = (restored(made.driver.as_ref())?, restored(made.functions.get(name))?);
    let first = scene.first.as_ref().map(|first| restored(made.functions.get(first))).transpose()?;
    let mut args = Args::new(ctx.clone(), 3 + made.given.len());
    args.push_arg(function)?;
    args.push_arg(ctx.json_parse(value.get())?)?;
    match first {
        Some(first) => args.push_arg(first)?,
        None => args.push_arg(rquickjs::Null)?,
    }
    for given in &made.given {
        args.push_arg(given.clone().restore(ctx)?)?;
    }
    driver.call_arg(args)
}
