//! What a formatter of dates is asked for, checked once when it is made.

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

use super::Refusal;
use super::locale;

/// The options as code gives them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Wanted {
    locales: Vec<String>,
    /// Which fields are put in when none is named: `date`, `time` or `all`.
    defaults: String,
    /// Which named fields keep the defaults out: `date`, `time` or `any`.
    needs: String,
    time_zone: Option<String>,
    hour12: Option<bool>,
    hour_cycle: Option<String>,
    #[serde(flatten)]
    fields: Fields,
}

/// What is shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weekday: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) year: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) month: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hour: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minute: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) second: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fractional_second_digits: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_zone_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date_style: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_style: Option<String>,
}

/// A formatter. Code sees it as `resolvedOptions()`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved {
    pub(super) locale: String,
    calendar: String,
    numbering_system: String,
    pub(super) time_zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hour_cycle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hour12: Option<bool>,
    #[serde(flatten)]
    pub(super) fields: Fields,
    /// The name of the facts that are used.
    #[serde(rename = "facts")]
    pub(super) facts: String,
    /// Whether the clock is the language's own choice.
    #[serde(rename = "ownClock")]
    pub(super) own_clock: bool,
}

const TEXT: &[&str] = &["long", "short", "narrow"];
const NUMBER: &[&str] = &["numeric", "2-digit"];
const MONTH: &[&str] = &["numeric", "2-digit", "long", "short", "narrow"];
const STYLE: &[&str] = &["full", "long", "medium", "short"];
const CYCLE: &[&str] = &["h11", "h12", "h23", "h24"];
const ZONE: &[&str] = &["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];

/// Checks what is wanted.
pub(super) fn resolve(wanted: Wanted) -> Result<Resolved, Refusal> {
    let Wanted { locales, defaults, needs, time_zone, hour12, hour_cycle, mut fields } = wanted;
    let (tag, facts) = locale::negotiate(&locales)
        .ok_or_else(|| Refusal::Range("Incorrect locale information provided".to_owned()))?;
    check(&fields, hour_cycle.as_deref())?;
    let zone = match time_zone {
        Some(name) => zone_name(&name)?,
        None => "UTC".to_owned(),
    };
    let has_style = fields.date_style.is_some() || fields.time_style.is_some();
    if has_style && fields.has_any() {
        let text = "dateStyle and timeStyle cannot stand beside single fields";
        return Err(Refusal::Type(text.to_owned()));
    }
    if fields.date_style.is_some() && needs == "time" || fields.time_style.is_some() && needs == "date" {
        return Err(Refusal::Type(format!("this style cannot be used for a {needs}")));
    }
    if !has_style {
        fields.put_defaults(&defaults, &needs);
    }
    let mut resolved = Resolved {
        locale: tag,
        calendar: "gregory".to_owned(),
        numbering_system: "latn".to_owned(),
        time_zone: zone,
        hour_cycle: None,
        hour12: None,
        facts: facts.to_owned(),
        own_clock: hour12.is_none() && hour_cycle.is_none(),
        fields,
    };
    if resolved.fields.hour.is_some() || resolved.fields.time_style.is_some() {
        let own = if locale::load(facts).twelve { "h12" } else { "h23" };
        let cycle = match hour12 {
            Some(true) => "h12".to_owned(),
            Some(false) => "h23".to_owned(),
            None => hour_cycle.unwrap_or_else(|| own.to_owned()),
        };
        resolved.hour12 = Some(cycle == "h11" || cycle == "h12");
        resolved.hour_cycle = Some(cycle);
    }
    Ok(resolved)
}

impl Fields {
    fn has_date(&self) -> bool {
        self.weekday.is_some() || self.year.is_some() || self.month.is_some() || self.day.is_some()
    }

    fn has_time(&self) -> bool {
        let clock = self.hour.is_some() || self.minute.is_some() || self.second.is_some();
        clock || self.fractional_second_digits.is_some()
    }

    fn has_any(&self) -> bool {
        self.has_date() || self.has_time() || self.time_zone_name.is_some()
    }

    fn put_defaults(&mut self, defaults: &str, needs: &str) {
        let named = match needs {
            "date" => self.has_date(),
            "time" => self.has_time(),
            _ => self.has_date() || self.has_time(),
        };
        if named {
            return;
        }
        let numeric = || Some("numeric".to_owned());
        if defaults != "time" {
            (self.year, self.month, self.day) = (numeric(), numeric(), numeric());
        }
        if defaults != "date" {
            (self.hour, self.minute, self.second) = (numeric(), numeric(), numeric());
        }
    }
}

fn check(fields: &Fields, hour_cycle: Option<&str>) -> Result<(), Refusal> {
    let rows: [(&str, Option<&str>, &[&str]); 11] = [
        ("weekday", fields.weekday.as_deref(), TEXT),
        ("year", fields.year.as_deref(), NUMBER),
        ("month", fields.month.as_deref(), MONTH),
        ("day", fields.day.as_deref(), NUMBER),
        ("hour", fields.hour.as_deref(), NUMBER),
        ("minute", fields.minute.as_deref(), NUMBER),
        ("second", fields.second.as_deref(), NUMBER),
        ("timeZoneName", fields.time_zone_name.as_deref(), ZONE),
        ("dateStyle", fields.date_style.as_deref(), STYLE),
        ("timeStyle", fields.time_style.as_deref(), STYLE),
        ("hourCycle", hour_cycle, CYCLE),
    ];
    for (name, value, allowed) in rows {
        if let Some(value) = value.filter(|value| !allowed.contains(value)) {
            let text = format!("Value {value} out of range for Intl.DateTimeFormat options property {name}");
            return Err(Refusal::Range(text));
        }
    }
    if fields.fractional_second_digits.is_some_and(|digits| !(1..=3).contains(&digits)) {
        return Err(Refusal::Range("fractionalSecondDigits value is out of range.".to_owned()));
    }
    Ok(())
}

/// The zone's own spelling, or a refusal: a wrong zone must never give a time.
fn zone_name(name: &str) -> Result<String, Refusal> {
    let zone = zone(name).ok_or_else(|| Refusal::Range(format!("Invalid time zone specified: {name}")))?;
    if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("gmt") {
        return Ok("UTC".to_owned());
    }
    Ok(zone.iana_name().map_or_else(|| name.to_owned(), str::to_owned))
}

/// A zone of the database, or an offset such as `+05:30`.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("gmt") {
        return Some(TimeZone::UTC);
    }
    if let Some(digits) = name.strip_prefix(['+', '-']) {
        let (hours, minutes) = digits.split_once(':').unwrap_or((digits.get(..2)?, digits.get(2..)?));
        let number = |text: &str| (text.len() == 2).then(|| text.parse::<i32>().ok()).flatten();
        let minutes = if minutes.is_empty() { 0 } else { number(minutes).filter(|minutes| *minutes < 60)? };
        let seconds = (number(hours).filter(|hours| *hours < 24)? * 60 + minutes) * 60;
        let signed = if name.starts_with('-') { -seconds } else { seconds };
        return Offset::from_seconds(signed).ok().map(TimeZone::fixed);
    }
    TimeZoneDatabase::bundled().get(name).ok()
}
