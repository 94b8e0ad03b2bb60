//! The client's arithmetic: stamps, lost pieces, percentiles, events.

use serde_json::json;
use toolyard_bench::chart::picture;
use toolyard_bench::clock::now_ns;
use toolyard_bench::drive::DriveError;
use toolyard_bench::drive::errand::{Errand, Watch};
use toolyard_bench::drive::stamps::Stamps;
use toolyard_bench::drive::stats::{median, percentile};
use toolyard_bench::frames::{Event, Frames};

#[test]
fn stamps_are_found_at_any_cut_and_counted_once() {
    let text =
        b"data: {\"delta\":\"~1000001 \"}\n\ndata: \"~1000002 ~1000003 \" again ~1000001 ~1000002 ~9 ~x";
    for cut in 0..text.len() {
        let (mut stamps, mut seen) = (Stamps::default(), Vec::new());
        stamps.push(&text[..cut], |stamp| seen.push(stamp));
        stamps.push(&text[cut..], |stamp| seen.push(stamp));
        assert_eq!(seen, [1_000_001, 1_000_002, 1_000_003], "cut at {cut}");
        assert_eq!(stamps.count(), 3);
    }
}

#[test]
fn a_missing_piece_is_an_error() {
    let errand = Errand::text(3);
    let mut watch = Watch::start();
    let now = now_ns();
    watch.read(format!("~{} ~{} ", now, now + 1).as_bytes());
    assert!(matches!(watch.end(&errand), Err(DriveError::Missing { got: 2, want: 3 })));
}

#[test]
fn the_delay_of_a_piece_is_the_time_since_its_stamp() {
    let mut watch = Watch::start();
    watch.read(format!("~{} ", now_ns() - 5_000_000).as_bytes());
    let watch = watch.end(&Errand::text(1)).unwrap();
    assert!(watch.delays[0] >= 5_000_000, "{:?}", watch.delays);
}

#[test]
fn percentiles_and_medians() {
    let values = [5.0, 1.0, 4.0, 2.0, 3.0];
    assert_eq!((median(&values), percentile(&values, 1.0), percentile(&values, 0.0)), (3.0, 5.0, 1.0));
    assert_eq!(median(&[]), 0.0);
}

#[test]
fn events_are_whole_at_any_cut() {
    let text = b": hello\n\nid: 3\nevent: run.completed\ndata: {\"a\":1}\n\ndata: [DONE]\n\nevent: open";
    let want = [("", ""), ("run.completed", "{\"a\":1}"), ("", "[DONE]")];
    for cut in 0..text.len() {
        let (mut frames, mut seen) = (Frames::default(), Vec::new());
        for bytes in [&text[..cut], &text[cut..]] {
            frames.push(bytes);
            while let Some(Event { name, data }) = frames.next_event() {
                seen.push((name.to_owned(), data.to_owned()));
            }
        }
        let seen: Vec<(&str, &str)> = seen.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
        assert_eq!(seen, want, "cut at {cut}");
    }
}

#[test]
fn the_chart_has_a_bar_for_each_server_that_was_measured() {
    let of = |cpu: f64| json!({"median": {"cpu_ms": cpu, "cpu_us_per_chunk": cpu}});
    let scenario = json!({"floor-db": of(1.0), "toolyard": of(2.0), "langgraph": of(80.0)});
    let figures =
        json!({"S1-live/c16": scenario, "S2/c16": scenario, "S3/c16": scenario, "S4/500": scenario});
    let svg = picture(&json!({"figures": figures})).unwrap();
    assert_eq!(svg.matches("<rect").count(), 4 * 3);
    assert!(svg.contains("80 · 40×") && !svg.contains("Pydantic"), "{svg}");
    assert!(picture(&json!({"figures": {}})).is_err());
}
