//! Agent cards: for everybody, with what caches need, and signed.

use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, ETAG, IF_NONE_MATCH, LAST_MODIFIED};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use toolyard_dialects::a2a::card::{CardFacts, Face, Skill, card as card_of, signed_view};
use toolyard_protocol::agent::AgentConfig;
use toolyard_protocol::{Hash, limits};
use toolyard_store::agents::{self, Agent};
use toolyard_store::{StoreError, Tx};

use super::place::Place;
use super::reply;
use crate::config::AuthMode;
use crate::http::Refusal;
use crate::routes::answer;
use crate::routes::call::Call;

/// How long a card may be kept.
const KEEP: &str = "public, max-age=60";

pub(super) async fn card(call: &Call, place: &Place, face: Face) -> Result<Response, Refusal> {
    let (tenant, name) = (call.tenant().clone(), place.agent.clone());
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx: &mut Tx<'_>| {
            Box::pin(async move {
                let Some(agent) = agents::by_name(tx, &tenant, &name).await? else { return Ok(None) };
                let config = agents::version(tx, &tenant, &agent.hash).await?;
                Ok(config.map(|config| (agent, config)))
            })
        })
        .await?;
    let (agent, config) = found.ok_or_else(|| Refusal::not_found("Agent"))?;
    let config: AgentConfig = serde_json::from_value(config).map_err(|_| Refusal::not_found("Agent"))?;
    let facts = facts(call, place, &agent, &config);
    let mut card = card_of(&facts, face);
    if face != Face::V03 {
        let keys = format!("{}/.well-known/jwks.json", facts.base);
        let signature = call.app.secrets.sealer().signer().sign_card(&signed_view(&facts, face), &keys);
        card["signatures"] = serde_json::json!([signature]);
    }
    let text = card.to_string();
    let tag = format!("\"{}\"", Hash::of(text.as_bytes()));
    let known = call.headers.get(IF_NONE_MATCH).and_then(|v| v.to_str().ok());
    let mut response = match known {
        Some(list) if list.split(',').any(|one| one.trim() == tag) => {
            StatusCode::NOT_MODIFIED.into_response()
        }
        _ => answer::text(200, text),
    };
    let headers = response.headers_mut();
    let pairs: [(HeaderName, String); 4] = [
        (CACHE_CONTROL, KEEP.to_owned()),
        (ETAG, tag),
        (LAST_MODIFIED, http_date(agent.updated_at.millis())),
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*".to_owned()),
    ];
    for (name, value) in pairs {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

fn facts(call: &Call, place: &Place, agent: &Agent, config: &AgentConfig) -> CardFacts {
    let name = agent.name.to_string();
    let description = config.agent.description.clone().filter(|text| !text.is_empty());
    let description = description.unwrap_or_else(|| format!("The agent {name}"));
    CardFacts {
        version: agent.hash.as_str().chars().take(12).collect(),
        base: reply::base(call),
        path: place.path(),
        keyed: call.app.config.auth == AuthMode::Keys,
        push: true,
        skills: vec![Skill {
            id: "chat".to_owned(),
            name: name.clone(),
            description: description.clone(),
            tags: vec!["chat".to_owned()],
        }],
        required: Vec::new(),
        call_timeout_seconds: limits::CLIENT_EXPIRES_MS / 1000,
        name,
        description,
    }
}

/// A moment as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(millis: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = millis.div_euclid(1000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since the first of March of the year zero, in cycles of 400 years.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month_index = usize::try_from((month + 2) % 12).unwrap_or(0);
    let year = year_of_era + era * 400 + i64::from(month_index < 2);
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{weekday}, {day:02} {} {year:04} {hour:02}:{minute:02}:{second:02} GMT", MONTHS[month_index])
}

#[cfg(test)]
mod tests {
    use super::http_date;

    #[test]
    fn moments_are_written_as_http_wants_them() {
        assert_eq!(http_date(784_111_777_000), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(951_782_400_000), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http_date(1_767_225_599_999), "Wed, 31 Dec 2025 23:59:59 GMT");
    }
}
