//! Streams that come back where they were.

use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use toolyard_client::{Client, ClientError, EventKind, RunId};

use crate::gateway::{Gateway, Yard, client_tool};
use crate::upstream::{Heard, answer, serve};

fn frame(id: usize, text: &str) -> String {
    let data = json!({"type": "text-delta", "runId": "run_x", "step": 1, "id": "0", "delta": text});
    format!("id: {id}\r\nevent: text-delta\r\ndata: {data}\r\n\r\n")
}

fn client(url: &str) -> Client {
    let backoff =
        toolyard_client::Backoff { first: std::time::Duration::from_millis(2), ..Default::default() };
    Client::builder().base_url(url).backoff(backoff).build().unwrap()
}

/// The stream is cut after every byte once: whatever arrived in part is asked
/// for again, and nothing comes twice.
#[tokio::test]
async fn a_stream_that_breaks_anywhere_goes_on_after_the_last_whole_event() {
    let whole = format!("{}{}{}", frame(1, "a"), ": keep-alive\r\n\r\n", frame(2, "ü"));
    let ended = "id: 3\nevent: run.completed\ndata: {\"type\":\"run.completed\",\"runId\":\"run_x\",\"status\":\"completed\"}\n\n";
    for cut in (0..=whole.len()).step_by(3) {
        let bytes = whole.clone().into_bytes();
        let (url, heard) = serve(move |count, request: &Heard| {
            let seen: usize = request.header("last-event-id").and_then(|id| id.parse().ok()).unwrap_or(0);
            if count == 0 {
                let mut first = answer("text/event-stream", "");
                first.extend_from_slice(&bytes[..cut]);
                return first;
            }
            let rest: String = [frame(1, "a"), frame(2, "ü")].into_iter().skip(seen).collect();
            answer("text/event-stream", &format!("{rest}{ended}"))
        })
        .await;
        let run = RunId::parse("run_x").unwrap();
        let events: Vec<_> = client(&url).runs().stream(&run).try_collect().await.unwrap();
        let ids: Vec<_> = events.iter().map(|event| event.id.unwrap()).collect();
        assert_eq!(ids, [1, 2, 3], "cut at {cut}");
        let said: String = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::TextDelta(delta) => Some(delta.delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(said, "aü");
        assert_eq!(heard.lock().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_busy_gateway_is_asked_again_and_a_refusal_is_the_end() {
    let (url, heard) = serve(|count, _| match count {
        0 => b"HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_vec(),
        1 => {
            b"HTTP/1.1 429 Slow\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_vec()
        }
        _ => {
            let body = "{\"error\":{\"code\":\"not_found\",\"message\":\"Run not found\"}}";
            format!("HTTP/1.1 404 No\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
                .into_bytes()
        }
    })
    .await;
    let mut stream = client(&url).runs().stream(&RunId::parse("run_x").unwrap());
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(&error, ClientError::Refused(refusal) if refusal.status == 404), "{error}");
    assert_eq!(error.to_string(), "Run not found");
    assert!(stream.next().await.is_none());
    assert_eq!(heard.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_gateway_that_stays_away_is_given_up_after_the_time_that_was_set() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::builder()
        .base_url(format!("http://{dead}"))
        .backoff(toolyard_client::Backoff {
            first: std::time::Duration::from_millis(5),
            ..Default::default()
        })
        .reconnect_for(std::time::Duration::from_millis(40))
        .build()
        .unwrap();
    let mut stream = client.runs().stream(&RunId::parse("run_x").unwrap());
    assert!(matches!(stream.next().await, Some(Err(ClientError::Unreachable(_)))));
}

#[tokio::test]
async fn a_reader_follows_a_run_over_a_kill_of_the_gateway() {
    let mut yard = Yard::new(json!([client_tool("work")])).await;
    let run = yard.say("call work {}").await;
    let mut stream = yard.client.runs().stream(&run);
    let mut seen = Vec::new();
    let call = loop {
        let event = stream.next().await.unwrap().unwrap();
        seen.extend(event.id);
        if let EventKind::CallReady(call) = event.kind {
            break call;
        }
    };
    yard.gateway.again();
    yard.client.runs().submit(&run, &call.tool_call_id, &Ok(json!("late"))).await.unwrap();
    while let Some(event) = stream.next().await {
        seen.extend(event.unwrap().id);
    }
    let expected: Vec<i64> = (1..=i64::try_from(seen.len()).unwrap()).collect();
    assert_eq!(seen, expected, "each event once");
    // Nothing follows the end.
    let last = *seen.last().unwrap();
    assert!(yard.client.runs().stream_after(&run, last).next().await.is_none());
}

#[tokio::test]
async fn a_request_that_creates_is_repeated_with_one_key_and_has_one_effect() {
    let (url, heard) = serve(|count, _| match count {
        0 => Vec::new(),
        _ => answer("application/json", "{\"smartSpace\":{\"id\":\"spc_1\",\"lastSeq\":0}}"),
    })
    .await;
    assert_eq!(client(&url).spaces().create("x").await.unwrap().id.as_str(), "spc_1");
    let keys: Vec<_> =
        heard.lock().unwrap().iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys.len() == 2 && keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
    // On a real gateway the second one finds what the first made.
    let gateway = Gateway::start();
    let made = gateway.client().entities().person("ann", "Ann").await.unwrap();
    assert_eq!(gateway.client().entities().person("ann", "Ann").await.unwrap().id, made.id);
}
