//! How people of a language write dates and numbers: the facts of CLDR, as
//! `scripts/extract-locales.mjs` wrote them down.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Tag and facts. The first is for everybody else.
const LOCALES: [(&str, &str); 13] = [
    ("en-US", include_str!("locales/en-US.json")),
    ("en-GB", include_str!("locales/en-GB.json")),
    ("da", include_str!("locales/da.json")),
    ("de", include_str!("locales/de.json")),
    ("es", include_str!("locales/es.json")),
    ("fr", include_str!("locales/fr.json")),
    ("it", include_str!("locales/it.json")),
    ("ja", include_str!("locales/ja.json")),
    ("nb", include_str!("locales/nb.json")),
    ("nl", include_str!("locales/nl.json")),
    ("pl", include_str!("locales/pl.json")),
    ("pt-BR", include_str!("locales/pt-BR.json")),
    ("sv", include_str!("locales/sv.json")),
];

/// The facts of one language. Patterns hold tokens such as `{d}` or `{M1}`, the
/// month by its name in list 1.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Locale {
    pub(super) months: Vec<Vec<String>>,
    /// From Sunday.
    pub(super) weekdays: Vec<Vec<String>>,
    pub(super) periods: [String; 2],
    /// Whether the clock has twelve hours unless one asks.
    pub(super) twelve: bool,
    /// By weekday, year, month, day: `-` absent, `n` numeric, `2` two digits, `s` short, `l` long.
    pub(super) date: BTreeMap<String, String>,
    /// By clock, form of the hour, form of the minutes, fields: `h12n2hm`.
    pub(super) time: BTreeMap<String, String>,
    pub(super) styles: BTreeMap<String, String>,
    pub(super) clocks: BTreeMap<String, String>,
    /// What stands between date, time and zone.
    pub(super) join: BTreeMap<String, String>,
    /// What an offset starts with: `GMT+1`.
    pub(super) utc: String,
    pub(super) minus: String,
    /// What stands between the hours and minutes of an offset.
    pub(super) colon: String,
    /// Short and long name by abbreviation and minutes.
    pub(super) zones: BTreeMap<String, [Option<String>; 2]>,
    pub(super) number: Numbers,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Numbers {
    pub(super) decimal: String,
    pub(super) group: String,
    pub(super) minus: String,
    /// Digits from which on they are grouped.
    pub(super) group_from: usize,
    pub(super) percent: String,
    pub(super) currency: String,
    /// The same below zero.
    pub(super) negative: String,
    pub(super) symbols: BTreeMap<String, String>,
}

/// The facts that go by this name.
pub(super) fn load(name: &str) -> Locale {
    let found = LOCALES.iter().find(|(tag, _)| *tag == name).unwrap_or(&LOCALES[0]);
    serde_json::from_str(found.1).unwrap_or_default()
}

/// The tag that is shown and the name of its facts, for the first tag of the
/// list that we know. Nothing when a tag is no tag at all.
pub(super) fn negotiate(wanted: &[String]) -> Option<(String, &'static str)> {
    let tags: Option<Vec<String>> = wanted.iter().map(|tag| canonical(tag)).collect();
    let known = tags?.into_iter().find_map(|tag| facts_of(&tag).map(|name| (tag, name)));
    Some(known.unwrap_or_else(|| (LOCALES[0].0.to_owned(), LOCALES[0].0)))
}

/// The facts that serve a tag: its own, or those of its language.
fn facts_of(tag: &str) -> Option<&'static str> {
    let name = |wanted: &str| LOCALES.iter().map(|(name, _)| *name).find(|name| *name == wanted);
    let language = tag.split('-').next()?;
    match tag {
        "en" => name("en-US"),
        "pt" => name("pt-BR"),
        "no" | "no-NO" => name("nb"),
        _ => name(tag).or_else(|| name(language)),
    }
}

/// `DE-de-u-hc-h12` is `de-DE`: extensions change nothing here.
fn canonical(tag: &str) -> Option<String> {
    let mut parts = tag.split('-').take_while(|part| part.len() > 1 || tag.len() == 1);
    let language = parts.next().filter(|part| (2..=8).contains(&part.len()) && is_letters(part))?;
    let mut canonical = language.to_ascii_lowercase();
    for part in parts {
        if !part.is_ascii()
            || part.is_empty()
            || part.len() > 8
            || !part.chars().all(|c| c.is_ascii_alphanumeric())
        {
            return None;
        }
        canonical.push('-');
        match part.len() {
            2 => canonical.push_str(&part.to_ascii_uppercase()),
            4 if is_letters(part) => {
                canonical.push_str(&part[..1].to_ascii_uppercase());
                canonical.push_str(&part[1..].to_ascii_lowercase());
            }
            _ => canonical.push_str(&part.to_ascii_lowercase()),
        }
    }
    Some(canonical)
}

fn is_letters(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphabetic())
}
