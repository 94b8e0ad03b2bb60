//! The demo model's commands. A command starts its line; other lines are
//! ignored once there is a command.

use serde_json::{Map, Value};

/// The answer to everything that is no command.
pub const HELP: &str = "\
I am Toolyard's demo model: I do not think, I follow commands. Write one per line:
call <tool> <json>: I call a tool (several lines: several calls).
slow <n>: I stream n words slowly.
cite <url>: I cite a source.
say <text>: I answer exactly this text.
think <text>: I show this text as reasoning.
fail: I fail.";

/// The most words that `slow` streams.
pub const SLOW_WORDS_MAX: u32 = 2000;

/// What one line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    Call {
        tool: &'a str,
        args: &'a str,
    },
    Slow(u32),
    Cite(&'a str),
    Say(&'a str),
    Think(&'a str),
    Fail,
    /// A command that cannot be followed, and why.
    Broken(String),
}

/// The commands of a message, in order.
pub(super) fn parse(text: &str) -> Vec<Command<'_>> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Command<'_>> {
    let line = line.trim_end();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let given = rest.trim();
    match (word, given) {
        ("fail", "") => Some(Command::Fail),
        ("call" | "slow" | "cite" | "say" | "think", "") => None,
        ("call", _) => Some(parse_call(given)),
        ("slow", _) => Some(parse_slow(given)),
        ("cite", url) => Some(Command::Cite(url)),
        ("say", _) => Some(Command::Say(rest)),
        ("think", _) => Some(Command::Think(rest)),
        _ => None,
    }
}

fn parse_call(given: &str) -> Command<'_> {
    let (tool, args) = given.split_once(char::is_whitespace).unwrap_or((given, ""));
    let args = args.trim();
    if args.is_empty() {
        return Command::Call { tool, args: "{}" };
    }
    match serde_json::from_str::<Map<String, Value>>(args) {
        Ok(_) => Command::Call { tool, args },
        Err(why) => Command::Broken(format!("The arguments of {tool} are not a JSON object: {why}.")),
    }
}

fn parse_slow(given: &str) -> Command<'_> {
    match given.parse::<u32>() {
        Ok(words) if (1..=SLOW_WORDS_MAX).contains(&words) => Command::Slow(words),
        _ => Command::Broken(format!("slow needs a number from 1 to {SLOW_WORDS_MAX}.")),
    }
}
