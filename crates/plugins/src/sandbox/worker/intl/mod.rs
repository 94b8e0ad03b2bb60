//! Dates and numbers as people write them, with real time zones.
//!
//! QuickJS has no `Intl` and ignores the time zone that it is given, which is a
//! wrong answer and no error. Here an unknown language gets American English, as
//! in browsers, and says so in `resolvedOptions`; an unknown zone is a RangeError.

mod date;
mod locale;
mod number;
mod options;

use rquickjs::{Ctx, Exception, Function, Object, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a formatter cannot be made, by the type of error that browsers throw.
#[derive(Debug)]
enum Refusal {
    Range(String),
    Type(String),
}

impl Refusal {
    fn throw(self, ctx: &Ctx<'_>) -> rquickjs::Error {
        match self {
            Self::Range(text) => Exception::throw_range(ctx, &text),
            Self::Type(text) => Exception::throw_type(ctx, &text),
        }
    }
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("dateResolve", Function::new(ctx.clone(), date_resolve)?)?;
    native.set("dateParts", Function::new(ctx.clone(), date_parts)?)?;
    native.set("numberResolve", Function::new(ctx.clone(), number_resolve)?)?;
    native.set("numberFormat", Function::new(ctx.clone(), number_format)?)
}

fn date_resolve(ctx: Ctx<'_>, wanted: String) -> Result<String> {
    let resolved = options::resolve(read(&ctx, &wanted)?).map_err(|refusal| refusal.throw(&ctx))?;
    write(&ctx, &resolved)
}

/// Type, text, type, text, …
fn date_parts(ctx: Ctx<'_>, resolved: String, milliseconds: f64) -> Result<Vec<String>> {
    let parts = date::parts(&read(&ctx, &resolved)?, milliseconds).map_err(|refusal| refusal.throw(&ctx))?;
    Ok(parts.into_iter().flat_map(|(kind, text)| [kind.to_owned(), text]).collect())
}

fn number_resolve(ctx: Ctx<'_>, wanted: String) -> Result<String> {
    let resolved = number::resolve(read(&ctx, &wanted)?).map_err(|refusal| refusal.throw(&ctx))?;
    write(&ctx, &resolved)
}

fn number_format(ctx: Ctx<'_>, resolved: String, value: f64) -> Result<String> {
    Ok(number::format(&read(&ctx, &resolved)?, value))
}

fn read<T: DeserializeOwned>(ctx: &Ctx<'_>, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| Exception::throw_range(ctx, &error.to_string()))
}

fn write(ctx: &Ctx<'_>, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Exception::throw_message(ctx, &error.to_string()))
}
