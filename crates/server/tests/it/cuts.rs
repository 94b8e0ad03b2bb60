//! S1: a connection that breaks inside a frame, wherever, costs the reader
//! nothing: half a frame is no event, and the whole one comes again.

use reqwest::Method;
use serde_json::json;
use toolyard_protocol::sse::{SseEvent, SseSplitter};

use crate::gateway::ask;
use crate::yard::{Stream, Yard, data, durable, read_all};

/// Where in a frame the line breaks.
#[derive(Debug, Clone, Copy)]
enum Cut {
    InId,
    InData,
    BeforeBlank,
}

const CUTS: [Cut; 3] = [Cut::InId, Cut::InData, Cut::BeforeBlank];

impl Cut {
    /// How much of a frame still comes. `frame` ends with its blank line.
    fn length(self, frame: &str) -> usize {
        let behind = |word: &str| frame.find(word).unwrap_or_else(|| panic!("no {word} in {frame:?}"));
        match self {
            Self::InId => behind("id: ") + "id: ".len() - 1,
            Self::InData => behind("data: ") + "data: ".len() + 5,
            Self::BeforeBlank => frame.len() - 1,
        }
    }
}

/// The first frame with an id in what came, as its place.
fn durable_frame(text: &str) -> Option<(usize, &str)> {
    let mut from = 0;
    while let Some(length) = text[from..].find("\n\n").map(|at| at + 2) {
        let frame = &text[from..from + length];
        if frame.lines().any(|line| line.starts_with("id: ")) {
            return Some((from, frame));
        }
        from += length;
    }
    None
}

/// Reads until the next frame with an id breaks off there. None: the stream ended.
async fn cut_short(yard: &Yard, run: &str, last: Option<&str>, cut: Cut) -> Option<Vec<SseEvent>> {
    let mut request = yard.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut response = request.send().await.unwrap();
    let mut text = String::new();
    loop {
        if let Some((at, frame)) = durable_frame(&text) {
            let mut events = Vec::new();
            let came = &text[..at + cut.length(frame)];
            SseSplitter::new(1 << 20).push(came.as_bytes(), &mut events).unwrap();
            return Some(events);
        }
        let bytes = response.chunk().await.unwrap()?;
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
}

/// Follows a live run. Every durable event is cut off in all three ways before it
/// is read whole; who cuts first changes from event to event.
#[tokio::test]
async fn s1_a_reader_that_is_cut_inside_a_frame_misses_nothing_and_hears_nothing_twice() {
    let yard = Yard::new().await;
    let run = yard.say("slow 20\ncall getUserApproval {\"q\":\"ok?\"}").await;
    let path = format!("/api/runs/{run}/stream");
    let mut read: Vec<SseEvent> = Vec::new();
    let mut cuts = 0;
    let over = |read: &[SseEvent]| read.last().is_some_and(|e| e.event.as_deref() == Some("run.completed"));
    while !over(&read) {
        let last = read.last().and_then(|event| event.id.clone());
        for n in 0..CUTS.len() {
            let cut = CUTS[(n + read.len()) % CUTS.len()];
            let came = cut_short(&yard, &run, last.as_deref(), cut).await.expect("more to come");
            assert_eq!(durable(&came), [], "{cut:?} behind {last:?}: half a frame is no event");
            cuts += 1;
        }
        let mut request = yard.gateway.secret(Method::GET, &path);
        if let Some(last) = &last {
            request = request.header("last-event-id", last);
        }
        let mut stream = Stream::new(request.send().await.unwrap());
        let next = loop {
            let event = stream.next().await.expect("more to come");
            if event.id.is_some() {
                break event;
            }
        };
        if next.event.as_deref() == Some("run.waiting_tool") {
            let call = yard.wait_of(&run).await["toolCallId"].clone();
            yard.submit(None, &run, json!({"callId": call, "result": 1})).await;
        }
        read.push(next);
    }
    let whole = read_all(yard.gateway.secret(Method::GET, &path).send().await.unwrap()).await;
    assert_eq!(read, durable(&whole));
    assert!(cuts >= 3 * 8, "only {cuts} cuts");
}

/// A position is a number of its own run. One that a reader brings from another
/// run is a position ahead of the log, or it is refused: never a silent gap.
#[tokio::test]
async fn s1_the_last_id_of_another_run_is_a_reset_or_refused() {
    let yard = Yard::new().await;
    let long = yard.say(&["call look {\"q\":\"x\"}"; 4].join("\n")).await;
    let far = yard.finish(&long).await.last().unwrap().id.clone().unwrap();
    let short = yard.say("say well").await;
    let end = yard.finish(&short).await.last().unwrap().id.clone().unwrap();
    assert!(far.parse::<u64>().unwrap() > end.parse::<u64>().unwrap(), "{far} {end}");
    let path = format!("/api/runs/{short}/stream");
    let ahead = yard.gateway.secret(Method::GET, &path).header("last-event-id", &far);
    let reset = Stream::new(ahead.send().await.unwrap()).next().await.unwrap();
    assert_eq!(reset.event.as_deref(), Some("reset"));
    assert_eq!(data(&reset)["lastSeq"].to_string(), end);
    for foreign in [long.as_str(), &format!("{long}:{far}")] {
        let (status, body) =
            ask(yard.gateway.secret(Method::GET, &path).header("last-event-id", foreign)).await;
        assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_cursor")), "{foreign}");
    }
}
