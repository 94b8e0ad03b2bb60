//! The functions that the shims build on. None of them reaches outside the
//! process but `ask`, which only speaks to the gateway.
//!
//! The object that holds them is given to the shims and to nobody else; code
//! that got hold of it would gain nothing.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray};
use serde_json::value::RawValue;

use super::state::State;
use super::{intl, pipe};
use crate::sandbox::job::Level;
use crate::sandbox::wire::Report;

/// Bytes of randomness for one question, as in browsers.
const RANDOM_BYTES: usize = 65_536;

/// Parts that are read only when code uses them.
const PARTS: [(&str, &str); 4] = [
    ("clone", include_str!("shim/clone.js")),
    ("intl", include_str!("shim/intl.js")),
    ("text", include_str!("shim/text.js")),
    ("url", include_str!("shim/url.js")),
];

pub(super) fn object<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set("load", Function::new(ctx.clone(), load)?)?;
    native.set("random", Function::new(ctx.clone(), random)?)?;
    native.set("uuid", Function::new(ctx.clone(), || uuid::Uuid::new_v4().to_string())?)?;
    native.set("encode", Function::new(ctx.clone(), encode)?)?;
    native.set("decode", Function::new(ctx.clone(), decode)?)?;
    native.set("url", Function::new(ctx.clone(), url)?)?;
    native.set("urlSet", Function::new(ctx.clone(), url_set)?)?;
    native.set("formParse", Function::new(ctx.clone(), form_parse)?)?;
    native.set("formWrite", Function::new(ctx.clone(), form_write)?)?;
    intl::install(ctx, &native)?;
    install_console(ctx, &native, state)?;
    install_timers(ctx, &native, state)?;
    install_ask(ctx, &native, state)?;
    Ok(native)
}

fn load<'js>(ctx: Ctx<'js>, part: String) -> Result<Function<'js>> {
    let found = PARTS.iter().find(|(name, _)| *name == part);
    ctx.eval(found.map_or("undefined", |(_, source)| *source))
}

fn install_console<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<State>) -> Result<()> {
    let state = state.clone();
    let write = move |ctx: Ctx<'js>, level: String, text: String| {
        let level = match level.as_str() {
            "debug" => Level::Debug,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => Level::Info,
        };
        if state.write(level, text) {
            return Ok(());
        }
        Err(Exception::throw_range(&ctx, "the console is full"))
    };
    native.set("write", Function::new(ctx.clone(), write)?)
}

fn install_timers<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<State>) -> Result<()> {
    let timers = state.clone();
    let set = move |ctx: Ctx<'js>, id: u32, ms: f64, repeats: bool| {
        // Bad numbers mean "now" in browsers. A repeat of nothing would never let go.
        let least = if repeats { 1.0 } else { 0.0 };
        let ms = if ms.is_finite() { ms.clamp(least, 1e9) } else { least };
        if timers.set_timer(id, Duration::from_secs_f64(ms / 1000.0), repeats) {
            return Ok(());
        }
        Err(Exception::throw_range(&ctx, "too many timers"))
    };
    native.set("setTimer", Function::new(ctx.clone(), set)?)?;
    let timers = state.clone();
    native.set("clearTimer", Function::new(ctx.clone(), move |id: u32| timers.clear_timer(id))?)
}

fn install_ask<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<State>) -> Result<()> {
    let state = state.clone();
    let next = Cell::new(0u32);
    let ask = move |ctx: Ctx<'js>, name: String, value: String| {
        let refused = |why: String| Exception::throw_message(&ctx, &why);
        state.open_ask().map_err(refused)?;
        let id = next.get();
        next.set(id.wrapping_add(1));
        let value = RawValue::from_string(value).map_err(|error| refused(error.to_string()))?;
        pipe::send(&Report::Asked { id, name, value }).map_err(|error| refused(error.to_string()))?;
        Ok::<u32, rquickjs::Error>(id)
    };
    native.set("ask", Function::new(ctx.clone(), ask)?)
}

fn random<'js>(ctx: Ctx<'js>, count: usize) -> Result<TypedArray<'js, u8>> {
    if count > RANDOM_BYTES {
        let text = format!("{count} bytes are more than the {RANDOM_BYTES} bytes of one call");
        return Err(Exception::throw_dom(&ctx, "QuotaExceededError", &text));
    }
    // A UUID of version 4 has 122 random bits; the six others are left out with their bytes.
    let mut bytes = Vec::with_capacity(count + 16);
    while bytes.len() < count {
        let uuid = uuid::Uuid::new_v4().into_bytes();
        bytes.extend(uuid.iter().enumerate().filter(|(at, _)| *at != 6 && *at != 8).map(|(_, byte)| *byte));
    }
    bytes.truncate(count);
    TypedArray::new(ctx, bytes)
}

fn encode(ctx: Ctx<'_>, text: String) -> Result<TypedArray<'_, u8>> {
    TypedArray::new(ctx, text.into_bytes())
}

/// UTF-8, one byte per sign, to text; bytes that are none become U+FFFD unless `fatal`.
fn decode(ctx: Ctx<'_>, binary: String, fatal: bool) -> Result<String> {
    let bytes = binary.chars().map(|sign| u8::try_from(u32::from(sign)).unwrap_or(b'?')).collect();
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) if fatal => Err(Exception::throw_type(&ctx, "The encoded data was not valid utf-8")),
        Err(error) => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// A URL in pieces: href, protocol, username, password, host, hostname, port,
/// pathname, search, hash, origin.
fn url(ctx: Ctx<'_>, text: String, base: Option<String>) -> Result<Vec<String>> {
    let invalid = |_| Exception::throw_type(&ctx, "Invalid URL");
    let base = base.map(|base| url::Url::parse(&base)).transpose().map_err(invalid)?;
    url::Url::options().base_url(base.as_ref()).parse(&text).map(|url| pieces(&url)).map_err(invalid)
}

/// The same with one piece replaced. What does not fit changes nothing, as in browsers.
fn url_set(ctx: Ctx<'_>, href: String, piece: String, value: String) -> Result<Vec<String>> {
    let mut url = url::Url::parse(&href).map_err(|_| Exception::throw_type(&ctx, "Invalid URL"))?;
    let _ = match piece.as_str() {
        "protocol" => url::quirks::set_protocol(&mut url, &value),
        "username" => url::quirks::set_username(&mut url, &value),
        "password" => url::quirks::set_password(&mut url, &value),
        "host" => url::quirks::set_host(&mut url, &value),
        "hostname" => url::quirks::set_hostname(&mut url, &value),
        "port" => url::quirks::set_port(&mut url, &value),
        "pathname" => {
            url::quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            url::quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            url::quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Ok(()),
    };
    Ok(pieces(&url))
}

fn pieces(url: &url::Url) -> Vec<String> {
    use url::quirks;
    let borrowed = [
        quirks::href(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ];
    borrowed.into_iter().map(str::to_owned).chain([quirks::origin(url)]).collect()
}

fn form_parse(text: String) -> Vec<Vec<String>> {
    url::form_urlencoded::parse(text.as_bytes())
        .map(|(name, value)| vec![name.into(), value.into()])
        .collect()
}

fn form_write(pairs: Vec<Vec<String>>) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for pair in &pairs {
        if let [name, value] = pair.as_slice() {
            form.append_pair(name, value);
        }
    }
    form.finish()
}
