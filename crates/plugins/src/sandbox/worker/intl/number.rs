//! Numbers as text: plain, percent, currency.

use serde::{Deserialize, Serialize};

use super::Refusal;
use super::locale::{self, Numbers};

/// Digits that a fraction can have, as in browsers.
const DIGITS: usize = 100;

/// The options as code gives them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Wanted {
    locales: Vec<String>,
    style: Option<String>,
    currency: Option<String>,
    currency_display: Option<String>,
    minimum_integer_digits: Option<usize>,
    minimum_fraction_digits: Option<usize>,
    maximum_fraction_digits: Option<usize>,
    use_grouping: Option<bool>,
}

/// A formatter. Code sees it as `resolvedOptions()`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved {
    locale: String,
    numbering_system: String,
    style: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    currency_display: Option<String>,
    minimum_integer_digits: usize,
    minimum_fraction_digits: usize,
    maximum_fraction_digits: usize,
    use_grouping: bool,
    facts: String,
}

pub(super) fn resolve(wanted: Wanted) -> Result<Resolved, Refusal> {
    let range = |text: &str| Refusal::Range(text.to_owned());
    let (tag, facts) =
        locale::negotiate(&wanted.locales).ok_or_else(|| range("Incorrect locale information provided"))?;
    let style = wanted.style.unwrap_or_else(|| "decimal".to_owned());
    if !["decimal", "percent", "currency"].contains(&style.as_str()) {
        return Err(Refusal::Range(format!(
            "Value {style} out of range for Intl.NumberFormat options property style"
        )));
    }
    let currency = wanted.currency.map(|currency| currency.to_ascii_uppercase());
    if currency.as_ref().is_some_and(|code| code.len() != 3 || !code.chars().all(|c| c.is_ascii_uppercase()))
    {
        return Err(range("Invalid currency code"));
    }
    if style == "currency" && currency.is_none() {
        return Err(Refusal::Type("Currency code is required with currency style.".to_owned()));
    }
    let (least, most) = match (style.as_str(), currency.as_deref()) {
        ("currency", Some(code)) => (minor_digits(code), minor_digits(code)),
        ("percent", _) => (0, 0),
        _ => (0, 3),
    };
    let minimum = wanted.minimum_fraction_digits;
    let maximum = wanted.maximum_fraction_digits;
    let integers = wanted.minimum_integer_digits.unwrap_or(1);
    let too_many = |digits: Option<usize>| digits.is_some_and(|digits| digits > DIGITS);
    if too_many(minimum) || too_many(maximum) || !(1..=21).contains(&integers) {
        return Err(range("a number of digits is out of range"));
    }
    if matches!((minimum, maximum), (Some(minimum), Some(maximum)) if minimum > maximum) {
        return Err(range("maximumFractionDigits value is out of range."));
    }
    let is_currency = style == "currency";
    Ok(Resolved {
        locale: tag,
        numbering_system: "latn".to_owned(),
        currency: currency.filter(|_| is_currency),
        currency_display: is_currency.then(|| wanted.currency_display.unwrap_or_else(|| "symbol".to_owned())),
        minimum_integer_digits: integers,
        minimum_fraction_digits: minimum.unwrap_or_else(|| least.min(maximum.unwrap_or(least))),
        maximum_fraction_digits: maximum.unwrap_or_else(|| most.max(minimum.unwrap_or(most))),
        use_grouping: wanted.use_grouping.unwrap_or(true),
        style,
        facts: facts.to_owned(),
    })
}

/// Digits after the point of a currency.
fn minor_digits(currency: &str) -> usize {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND"
        | "VUV" | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

/// Writes a number down.
pub(super) fn format(resolved: &Resolved, value: f64) -> String {
    let facts = locale::load(&resolved.facts).number;
    let size = if resolved.style == "percent" { value.abs() * 100.0 } else { value.abs() };
    let text = if size.is_finite() {
        grouped(&digits(resolved, size), resolved, &facts)
    } else if size.is_nan() {
        "NaN".to_owned()
    } else {
        "∞".to_owned()
    };
    let negative = value.is_sign_negative() && !value.is_nan();
    if let Some(code) = &resolved.currency {
        return money(&facts, code, &text, negative, resolved.currency_display.as_deref() == Some("code"));
    }
    let whole = if resolved.style == "percent" { facts.percent.replace("{number}", &text) } else { text };
    if negative { format!("{}{whole}", facts.minus) } else { whole }
}

fn money(facts: &Numbers, code: &str, text: &str, negative: bool, by_code: bool) -> String {
    let pattern = if negative { &facts.negative } else { &facts.currency };
    let sign = facts.symbols.get(code).filter(|_| !by_code).map_or(code, String::as_str);
    // A sign that ends in a letter keeps its distance from the number.
    let apart = pattern.contains("{sign}{number}") && sign.ends_with(char::is_alphabetic);
    let number = if apart { format!("\u{a0}{text}") } else { text.to_owned() };
    pattern.replace("{minus}", &facts.minus).replace("{sign}", sign).replace("{number}", &number)
}

/// The decimal digits, rounded as written: halves of the shortest text go up.
fn digits(resolved: &Resolved, size: f64) -> String {
    let (least, most) = (resolved.minimum_fraction_digits, resolved.maximum_fraction_digits);
    let rounded = round(&format!("{size}"), most);
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let mut fraction = fraction.trim_end_matches('0').to_owned();
    while fraction.len() < least {
        fraction.push('0');
    }
    let whole = format!("{whole:0>width$}", width = resolved.minimum_integer_digits);
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

/// Rounds decimal text to so many digits after the point, halves up.
fn round(text: &str, most: usize) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() <= most {
        return text.to_owned();
    }
    let up = fraction.as_bytes()[most] >= b'5';
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes().take(most)).collect();
    if up {
        let mut at = digits.len();
        loop {
            if at == 0 {
                digits.insert(0, b'1');
                break;
            }
            at -= 1;
            if digits[at] < b'9' {
                digits[at] += 1;
                break;
            }
            digits[at] = b'0';
        }
    }
    let point = digits.len() - most;
    let text: String = digits.into_iter().map(char::from).collect();
    if most == 0 { text } else { format!("{}.{}", &text[..point], &text[point..]) }
}

fn grouped(text: &str, resolved: &Resolved, facts: &Numbers) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut out = String::new();
    let groups = resolved.use_grouping && whole.len() >= facts.group_from;
    for (at, digit) in whole.chars().enumerate() {
        if groups && at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push_str(&facts.group);
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push_str(&facts.decimal);
        out.push_str(fraction);
    }
    out
}
