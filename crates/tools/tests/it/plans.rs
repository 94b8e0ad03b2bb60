//! G25: plans, and the times they name.

use serde_json::json;
use toolyard_protocol::Timestamp;
use toolyard_tools::timing::{self, Wanted};

use crate::home::{Home, START_MS};

fn ms(text: &str) -> i64 {
    serde_json::from_value::<Timestamp>(json!(text)).unwrap().millis()
}

fn next(cron: &str, zone: &str, after: &str) -> Result<Option<String>, String> {
    let found = timing::next_after(cron, zone, Timestamp::from_millis(ms(after)))?;
    Ok(found.map(|t| t.to_string()))
}

#[test]
fn a_pattern_follows_its_zone_over_a_change_of_the_clock() {
    // Berlin: UTC+1 in winter, UTC+2 from 28 March 2027.
    let nine = |after| next("0 9 * * *", "Europe/Berlin", after).unwrap().unwrap();
    assert_eq!(nine("2027-03-26T12:00:00Z"), "2027-03-27T08:00:00.000Z");
    assert_eq!(nine("2027-03-27T12:00:00Z"), "2027-03-28T07:00:00.000Z");
    assert_eq!(
        next("*/15 * * * *", "UTC", "2027-01-01T00:15:00Z").unwrap().unwrap(),
        "2027-01-01T00:30:00.000Z"
    );
}

/// A day that no calendar has is told at once, without a search through the years.
#[test]
fn g25_a_pattern_for_a_day_that_never_comes_has_no_next_time() {
    let at = "2027-01-01T00:00:00Z";
    for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30-31 2 *", "0 0 31 4 ?"] {
        assert_eq!(next(never, "UTC", at), Ok(None), "{never}");
    }
    for comes in ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 28-31 2 *", "0 0 30 2 1", "0 0 31 * *", "0 0 L 2 *"] {
        assert!(next(comes, "UTC", at).unwrap().is_some(), "{comes}");
    }
}

#[test]
fn bad_times_are_told_in_a_sentence() {
    let now = Timestamp::from_millis(START_MS);
    let refused = |wanted: Wanted<'_>| timing::check(wanted, now).unwrap_err();
    let cron = |cron| Wanted { cron: Some(cron), ..Wanted::default() };
    for bad in ["", "banana", "* * * *", "61 * * * *", "* * * * * *"] {
        assert!(refused(cron(bad)).starts_with("Invalid cron pattern"), "{bad}");
    }
    assert!(refused(cron("0 0 30 2 *")).ends_with("never comes"));
    assert_eq!(refused(Wanted::default()), "Say when: cron (five fields) or scheduledAt (a time)");
    let both = Wanted { cron: Some("* * * * *"), at: Some("2030-01-01T00:00:00Z"), ..Wanted::default() };
    assert_eq!(refused(both), "Give cron or scheduledAt, not both");
    let at = |at| Wanted { at: Some(at), ..Wanted::default() };
    assert!(refused(at("tomorrow")).contains("is not a time"));
    assert!(refused(at("2001-01-01T00:00:00Z")).contains("lies in the past"));
    assert!(refused(at("2099-01-01T00:00:00Z")).contains("1830 days ahead"));
    let zone = Wanted { timezone: Some("Mars/Olympus"), ..cron("0 9 * * *") };
    assert!(refused(zone).starts_with("Unknown time zone"));
    assert!(
        refused(Wanted { recurring: Some(true), ..at("2027-06-01T00:00:00Z") })
            .contains("needs a cron pattern")
    );
}

#[test]
fn local_times_are_read_in_their_zone() {
    let now = Timestamp::from_millis(START_MS);
    let wanted =
        Wanted { at: Some("2027-06-01T09:00"), timezone: Some("Europe/Berlin"), ..Wanted::default() };
    let timing = timing::check(wanted, now).unwrap();
    assert_eq!((timing.next.millis(), timing.cron), (ms("2027-06-01T07:00:00Z"), None));
    let once = Wanted { cron: Some("0 9 * * *"), recurring: Some(false), ..Wanted::default() };
    let timing = timing::check(once, now).unwrap();
    assert_eq!((timing.at, timing.cron), (Some(timing.next), None));
}

#[tokio::test]
async fn g25_a_plan_is_made_read_and_canceled_once() {
    let home = Home::new().await;
    let anns = home.anns();
    let args =
        json!({"name": "Daily", "instruction": "Report", "cron": "0 9 * * *", "timezone": "Europe/Berlin"});
    let made = home.act(&anns, "createPlan", args).await.unwrap();
    let plan = &made["plan"];
    assert_eq!(
        (&plan["status"], &plan["isRecurring"], &plan["nextRunAt"], &plan["scheduledAt"]),
        (&json!("pending"), &json!(true), &json!("2027-01-16T08:00:00.000Z"), &json!(null))
    );
    let read = home.act(&anns, "getPlan", json!({"id": plan["id"]})).await.unwrap();
    assert_eq!(&read["plan"], plan);
    let list = home.act(&anns, "getPreviousPlans", json!({"status": "pending"})).await.unwrap();
    assert_eq!(list["plans"], json!([plan]));
    let canceled = home.act(&anns, "cancelPlan", json!({"id": plan["id"]})).await.unwrap();
    assert_eq!(
        (&canceled["plan"]["status"], &canceled["plan"]["nextRunAt"]),
        (&json!("canceled"), &json!(null))
    );
    let again = home.act(&anns, "cancelPlan", json!({"id": plan["id"]})).await.unwrap_err();
    assert!(again.ends_with("is canceled already"), "{again}");
}

#[tokio::test]
async fn g25_an_invalid_pattern_is_an_error_and_no_plan() {
    let home = Home::new().await;
    let anns = home.anns();
    let bad =
        home.act(&anns, "createPlan", json!({"instruction": "x", "cron": "every day"})).await.unwrap_err();
    assert!(bad.starts_with("Invalid cron pattern \"every day\""), "{bad}");
    let soon = Timestamp::from_millis(START_MS + 3_000).to_string();
    let soon =
        home.act(&anns, "createPlan", json!({"instruction": "x", "scheduledAt": soon})).await.unwrap_err();
    assert!(soon.contains("at least 10 seconds"), "{soon}");
    let list = home.act(&anns, "getPlan", json!({})).await.unwrap();
    assert_eq!(list["total"], 0);
}
