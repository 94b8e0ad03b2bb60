//! A moment as text, in parts.

use jiff::{Timestamp, Zoned};

use super::Refusal;
use super::locale::{self, Locale};
use super::options::{Resolved, zone};

/// A part of the text: its type as `formatToParts` names it, and its text.
pub(super) type Part = (&'static str, String);

/// Writes a moment down.
pub(super) fn parts(resolved: &Resolved, milliseconds: f64) -> Result<Vec<Part>, Refusal> {
    let invalid = || Refusal::Range("Invalid time value".to_owned());
    if !milliseconds.is_finite() {
        return Err(invalid());
    }
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates, and the range is checked")]
    let moment = Timestamp::from_millisecond(milliseconds as i64).map_err(|_| invalid())?;
    let zone = zone(&resolved.time_zone).ok_or_else(invalid)?;
    let facts = locale::load(&resolved.facts);
    let writer = Writer { at: moment.to_zoned(zone), resolved, facts: &facts };
    Ok(writer.write(&pattern(resolved, &facts)))
}

/// The pattern of date, time and zone together.
fn pattern(resolved: &Resolved, facts: &Locale) -> String {
    let fields = &resolved.fields;
    let join = |name: &str| facts.join.get(name).cloned().unwrap_or_else(|| " ".to_owned());
    if fields.date_style.is_some() || fields.time_style.is_some() {
        let date =
            fields.date_style.as_ref().map(|style| facts.styles.get(style).cloned().unwrap_or_default());
        let time = fields.time_style.as_ref().map(|style| clock(resolved, facts, style));
        let glue = match fields.date_style.as_deref() {
            Some("full") => "styleFull",
            Some("long") => "styleLong",
            Some("medium") => "styleMedium",
            _ => "styleShort",
        };
        return joined(date, time, &join(glue));
    }
    let date = date_pattern(resolved, facts);
    let time = time_pattern(resolved, facts);
    let glue = join(match (fields.month.as_deref(), fields.weekday.is_some()) {
        (Some("long"), true) => "full",
        (Some("long"), false) => "long",
        (Some("short" | "narrow"), _) => "medium",
        (None, true) if fields.day.is_none() && fields.year.is_none() => "weekday",
        _ => "short",
    });
    let zone = fields.time_zone_name.as_ref().map(|_| "{z}".to_owned());
    match time {
        Some(time) => joined(date, Some(joined(Some(time), zone, &join("zoneOfTime"))), &glue),
        None => joined(date, zone, &join("zoneOfDate")),
    }
}

fn joined(one: Option<String>, other: Option<String>, glue: &str) -> String {
    match (one, other) {
        (Some(one), Some(other)) => format!("{one}{glue}{other}"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

fn date_pattern(resolved: &Resolved, facts: &Locale) -> Option<String> {
    let fields = &resolved.fields;
    let sign = |value: &Option<String>| match value.as_deref() {
        Some("numeric") => 'n',
        Some("2-digit") => '2',
        Some("long") => 'l',
        Some(_) => 's',
        None => '-',
    };
    let key: String =
        [&fields.weekday, &fields.year, &fields.month, &fields.day].into_iter().map(sign).collect();
    facts.date.get(&key).cloned()
}

fn time_pattern(resolved: &Resolved, facts: &Locale) -> Option<String> {
    let fields = &resolved.fields;
    let (minute, second) = (fields.minute.is_some(), fields.second.is_some());
    let key = if let Some(hour) = &fields.hour {
        let form = |value: &str| if value == "2-digit" { '2' } else { 'n' };
        let minutes = fields.minute.as_deref().or(fields.second.as_deref()).map_or('n', form);
        let shown = if second {
            "hms"
        } else if minute {
            "hm"
        } else {
            "h"
        };
        format!("{}{}{minutes}{shown}", clock_key(resolved), form(hour))
    } else if minute && second {
        "ms".to_owned()
    } else if minute {
        "m".to_owned()
    } else if second {
        "s".to_owned()
    } else {
        return fields.fractional_second_digits.map(|_| "{f}".to_owned());
    };
    let pattern = facts.time.get(&key)?.clone();
    Some(match fields.fractional_second_digits {
        Some(_) if second => pattern.replacen("s}", &format!("s}}{}{{f}}", facts.number.decimal), 1),
        _ => pattern,
    })
}

fn clock_key(resolved: &Resolved) -> &'static str {
    match (resolved.own_clock, resolved.hour12) {
        (true, _) => "own",
        (false, Some(true)) => "h12",
        (false, _) => "h23",
    }
}

/// A time by its style. Another clock than the language's own has no style, so
/// its fields are taken.
fn clock(resolved: &Resolved, facts: &Locale, style: &str) -> String {
    let usual = resolved.hour12 == Some(facts.twelve);
    if usual {
        return facts.clocks.get(style).cloned().unwrap_or_default();
    }
    let fields = if style == "short" { "hm" } else { "hms" };
    let form = if resolved.hour12 == Some(true) { 'n' } else { '2' };
    let time =
        facts.time.get(&format!("{}{form}2{fields}", clock_key(resolved))).cloned().unwrap_or_default();
    if matches!(style, "full" | "long") { format!("{time} {{z}}") } else { time }
}

struct Writer<'a> {
    at: Zoned,
    resolved: &'a Resolved,
    facts: &'a Locale,
}

impl Writer<'_> {
    fn write(&self, pattern: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((token, after)) = after.split_once('}') else { break };
            push_literal(&mut parts, literal);
            parts.push(self.token(token));
            rest = after;
        }
        push_literal(&mut parts, rest);
        parts
    }

    fn token(&self, token: &str) -> Part {
        let at = &self.at;
        let hour = at.hour();
        let twelve = match (hour % 12, self.resolved.hour_cycle.as_deref()) {
            (0, Some("h11")) => 0,
            (0, _) => 12,
            (hour, _) => hour,
        };
        let round_the_clock =
            if hour == 0 && self.resolved.hour_cycle.as_deref() == Some("h24") { 24 } else { hour };
        match token {
            "y" => ("year", at.year().to_string()),
            "yy" => ("year", format!("{:02}", at.year().rem_euclid(100))),
            "M" => ("month", at.month().to_string()),
            "MM" => ("month", format!("{:02}", at.month())),
            "d" => ("day", at.day().to_string()),
            "dd" => ("day", format!("{:02}", at.day())),
            "h" => ("hour", twelve.to_string()),
            "hh" => ("hour", format!("{twelve:02}")),
            "H" => ("hour", round_the_clock.to_string()),
            "HH" => ("hour", format!("{round_the_clock:02}")),
            "m" => ("minute", at.minute().to_string()),
            "mm" => ("minute", format!("{:02}", at.minute())),
            "s" => ("second", at.second().to_string()),
            "ss" => ("second", format!("{:02}", at.second())),
            "f" => ("fractionalSecond", self.fraction()),
            "a" => ("dayPeriod", self.facts.periods[usize::from(hour >= 12)].clone()),
            "z" => ("timeZoneName", self.zone()),
            name => self.name(name),
        }
    }

    /// `M1` or `E0`: a name of a month or a weekday, by its list.
    fn name(&self, token: &str) -> Part {
        let (kind, list) = token.split_at(1);
        let list: usize = list.parse().unwrap_or(0);
        let (kind, lists, at) = match kind {
            "M" => ("month", &self.facts.months, self.at.month() - 1),
            _ => ("weekday", &self.facts.weekdays, self.at.weekday().to_sunday_zero_offset()),
        };
        let name = lists.get(list).and_then(|list| list.get(usize::try_from(at).unwrap_or(0)));
        (kind, name.cloned().unwrap_or_default())
    }

    fn fraction(&self) -> String {
        let digits = self.resolved.fields.fractional_second_digits.unwrap_or(3);
        format!("{:03}", self.at.millisecond())[..digits.clamp(1, 3)].to_owned()
    }

    fn zone(&self) -> String {
        let fields = &self.resolved.fields;
        let wanted = match (fields.time_zone_name.as_deref(), fields.time_style.as_deref()) {
            (Some(name), _) => name,
            (None, Some("full")) => "long",
            (None, _) => "short",
        };
        let seconds = self.at.offset().seconds();
        let info = self.at.time_zone().to_offset_info(self.at.timestamp());
        let known = self.facts.zones.get(&format!("{}{}", info.abbreviation(), seconds / 60));
        let name = match (wanted, known) {
            ("short" | "shortGeneric", Some([Some(name), _]))
            | ("long" | "longGeneric", Some([_, Some(name)])) => Some(name.clone()),
            _ => None,
        };
        name.unwrap_or_else(|| self.offset(seconds, wanted.starts_with("long")))
    }

    /// `GMT+5:30`, or `GMT+05:30` when long.
    fn offset(&self, seconds: i32, long: bool) -> String {
        let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
        let (utc, colon) = (&self.facts.utc, &self.facts.colon);
        let sign = if seconds < 0 { self.facts.minus.as_str() } else { "+" };
        match (seconds, long, minutes) {
            (0, _, _) => utc.clone(),
            (_, true, _) => format!("{utc}{sign}{hours:02}{colon}{minutes:02}"),
            (_, false, 0) => format!("{utc}{sign}{hours}"),
            (_, false, _) => format!("{utc}{sign}{hours}{colon}{minutes:02}"),
        }
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    if text.is_empty() {
        return;
    }
    match parts.last_mut() {
        Some(("literal", before)) => before.push_str(text),
        _ => parts.push(("literal", text.to_owned())),
    }
}
