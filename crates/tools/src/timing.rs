//! When a plan runs: a cron pattern or a moment, in a time zone.

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp as Moment, Zoned, civil};
use toolyard_protocol::{Timestamp, limits};

/// What was asked for, as written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Five fields: minute, hour, day of month, month, day of week.
    pub cron: Option<&'a str>,
    /// RFC 3339, or a local time of the zone.
    pub at: Option<&'a str>,
    /// An IANA name. Missing means UTC.
    pub timezone: Option<&'a str>,
    /// Missing means yes with a pattern, no with a moment.
    pub recurring: Option<bool>,
}

/// A checked time of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// Only of plans that recur.
    pub cron: Option<String>,
    pub timezone: String,
    /// Only of plans that run once.
    pub at: Option<Timestamp>,
    pub next: Timestamp,
}

/// Checks a plan's time. The error is a sentence for whoever wrote it.
pub fn check(wanted: Wanted<'_>, now: Timestamp) -> Result<Timing, String> {
    let timezone = wanted.timezone.map(str::trim).filter(|name| !name.is_empty()).unwrap_or("UTC");
    match (wanted.cron, wanted.at) {
        (Some(_), Some(_)) => Err("Give cron or scheduledAt, not both".to_owned()),
        (None, None) => Err("Say when: cron (five fields) or scheduledAt (a time)".to_owned()),
        (Some(cron), None) => {
            let next = next_after(cron, timezone, now)?;
            let next = next.ok_or_else(|| format!("The cron pattern {cron:?} never comes"))?;
            let recurs = wanted.recurring.unwrap_or(true);
            Ok(Timing {
                cron: recurs.then(|| cron.trim().to_owned()),
                timezone: timezone.to_owned(),
                at: (!recurs).then_some(next),
                next,
            })
        }
        (None, Some(_)) if wanted.recurring == Some(true) => {
            Err("A plan that recurs needs a cron pattern".to_owned())
        }
        (None, Some(at)) => {
            let next = moment(at, timezone)?;
            if now.since(next) > limits::PLAN_LATE_SECONDS * 1000 {
                return Err(format!("scheduledAt lies in the past: {next}; now it is {now}"));
            }
            if next.since(now) > limits::PLAN_DAYS * 24 * 60 * 60 * 1000 {
                return Err(format!("scheduledAt lies more than {} days ahead", limits::PLAN_DAYS));
            }
            Ok(Timing { cron: None, timezone: timezone.to_owned(), at: Some(next), next })
        }
    }
}

/// The first occurrence of a pattern after a moment. None if there is none.
pub fn next_after(cron: &str, timezone: &str, after: Timestamp) -> Result<Option<Timestamp>, String> {
    let pattern = cron.trim();
    if pattern.len() > limits::LABEL_CHARS {
        return Err(format!("The cron pattern is longer than {} characters", limits::LABEL_CHARS));
    }
    // Without seconds a pattern comes at most once a minute.
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let parsed = parser.parse(pattern).map_err(|e| format!("Invalid cron pattern {pattern:?}: {e}"))?;
    // Looking for a day that no calendar has takes the search through all years.
    if !may_come(pattern) {
        return Ok(None);
    }
    let from = Moment::from_millisecond(after.millis()).map_err(|e| e.to_string())?;
    let from: Zoned = from.to_zoned(zone(timezone)?);
    match parsed.find_next_occurrence(&from, false) {
        Ok(next) => Ok(Some(Timestamp::from_millis(next.timestamp().as_millisecond()))),
        Err(_) => Ok(None),
    }
}

/// Is there a day like that? Only plain numbers, lists and ranges are judged;
/// of all else it is said to be possible.
fn may_come(pattern: &str) -> bool {
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    let [_, _, days, months, "*" | "?"] = fields.as_slice() else { return true };
    let (Some(day), Some(months)) = (numbers(days).and_then(|days| days.into_iter().min()), numbers(months))
    else {
        return true;
    };
    months.into_iter().any(|month| match month {
        2 => day <= 29,
        4 | 6 | 9 | 11 => day <= 30,
        _ => true,
    })
}

/// The numbers of a field like `1,3-5`. None if it is more than that.
fn numbers(field: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in field.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        all.extend((first..=last).take(64));
    }
    Some(all)
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name)
        .map_err(|_| format!("Unknown time zone {name:?}: use an IANA name such as Europe/Berlin"))
}

fn moment(text: &str, timezone: &str) -> Result<Timestamp, String> {
    let zone = zone(timezone)?;
    let text = text.trim();
    let found = match text.parse::<Moment>() {
        Ok(moment) => Some(moment),
        Err(_) => text
            .parse::<civil::DateTime>()
            .ok()
            .and_then(|local| local.to_zoned(zone).ok())
            .map(|z| z.timestamp()),
    };
    let found = found.ok_or_else(|| {
        format!("scheduledAt {text:?} is not a time: write it as 2027-01-31T09:00:00Z or 2027-01-31T09:00 with a timezone")
    })?;
    Ok(Timestamp::from_millis(found.as_millisecond()))
}
