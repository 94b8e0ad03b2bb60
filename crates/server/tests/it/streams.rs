//! S1: a reader that comes back misses nothing. S5: live, replayed and listed
//! are the same bytes.

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::gateway::{Folder, Gateway, PATIENCE, SECRET, ask, fine};
use crate::yard::{Stream, Yard, data, durable, eventually, join, read_all};

const CALL: &str = "call getUserApproval {\"q\":\"ok?\"}";

async fn finished_run(yard: &Yard) -> String {
    let run = yard.say(CALL).await;
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    yard.submit(None, &run, json!({"callId": call, "result": 1})).await;
    yard.finish(&run).await;
    run
}

#[tokio::test]
async fn s1_a_reader_resumes_after_every_event() {
    let yard = Yard::new().await;
    let run = finished_run(&yard).await;
    let path = format!("/api/runs/{run}/stream");
    let whole = durable(&read_all(yard.gateway.secret(Method::GET, &path).send().await.unwrap()).await);
    let ids: Vec<_> = whole.iter().map(|e| e.id.clone().unwrap()).collect();
    let dense: Vec<_> = (1..=whole.len()).map(|n| n.to_string()).collect();
    assert_eq!(ids, dense, "a backend sees every seq");
    for (n, event) in whole.iter().enumerate() {
        let id = event.id.clone().unwrap();
        let by_header = yard.gateway.secret(Method::GET, &path).header("last-event-id", &id);
        let by_query = yard.gateway.secret(Method::GET, &format!("{path}?afterSeq={id}"));
        let by_since = yard.gateway.secret(Method::GET, &format!("{path}?since={id}"));
        for request in [by_header, by_query, by_since] {
            if n + 1 == whole.len() {
                // Nothing follows: a browser is told not to come back.
                assert_eq!(request.send().await.unwrap().status(), 204);
                continue;
            }
            let rest = durable(&read_all(request.send().await.unwrap()).await);
            assert_eq!(rest, whole[n + 1..], "after {id}");
        }
    }
    // The header of a reconnecting browser wins over its first query.
    let both =
        yard.gateway.secret(Method::GET, &format!("{path}?afterSeq=0")).header("last-event-id", &ids[3]);
    assert_eq!(durable(&read_all(both.send().await.unwrap()).await), whole[4..]);
}

#[tokio::test]
async fn s1_garbage_is_refused_and_a_position_ahead_of_the_log_is_reset() {
    let yard = Yard::new().await;
    let run = finished_run(&yard).await;
    let path = format!("/api/runs/{run}/stream");
    for garbage in ["abc", "-1", "1.5", "0x1", "99999999999999999999"] {
        let (status, body) =
            ask(yard.gateway.secret(Method::GET, &path).header("last-event-id", garbage)).await;
        assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_cursor")), "{garbage}");
    }
    let ahead = yard.gateway.user("ann", Method::GET, &path).header("last-event-id", "4711");
    let mut stream = Stream::new(ahead.send().await.unwrap());
    let reset = stream.next().await.unwrap();
    assert_eq!(reset.event.as_deref(), Some("reset"));
    let snapshot = data(&reset);
    assert_eq!(snapshot["run"]["status"], "completed");
    assert_eq!(reset.id.as_deref(), Some(snapshot["lastSeq"].to_string().as_str()));
    assert!(snapshot["run"].get("agentVersion").is_none(), "a user's snapshot is filtered too");
    assert_eq!(stream.next().await, None, "the run has ended");
    // A space's stream knows it as well.
    let space = format!("/api/smart-spaces/{}/stream", yard.space);
    let ahead = yard.gateway.secret(Method::GET, &space).header("last-event-id", "4711");
    let mut stream = Stream::new(ahead.send().await.unwrap());
    let reset = stream.next().await.unwrap();
    assert_eq!(reset.event.as_deref(), Some("reset"));
    // And goes on from there.
    let run = yard.say("hello").await;
    let next = stream.until("run.created").await;
    assert_eq!(data(&next)["runId"], json!(run));
}

#[tokio::test]
async fn s5_live_replayed_and_listed_events_are_byte_equal_for_each_key() {
    let yard = Yard::new().await;
    let run = yard.say(CALL).await;
    let path = format!("/api/runs/{run}/stream");
    let live_user = yard.gateway.user("ann", Method::GET, &path).send().await.unwrap();
    let live_secret = yard.gateway.secret(Method::GET, &path).send().await.unwrap();
    let call = yard.wait_of(&run).await["toolCallId"].clone();
    yard.submit(None, &run, json!({"callId": call, "result": {"x": 1}})).await;
    let (live_user, live_secret) = tokio::join!(read_all(live_user), read_all(live_secret));
    for (user, live) in [(Some("ann"), live_user), (None, live_secret)] {
        let get = |path: &str| match user {
            Some(user) => yard.gateway.user(user, Method::GET, path),
            None => yard.gateway.secret(Method::GET, path),
        };
        let replayed = read_all(get(&path).send().await.unwrap()).await;
        assert_eq!(durable(&replayed), durable(&live));
        let listed = get(&format!("/api/runs/{run}/events")).send().await.unwrap().text().await.unwrap();
        for event in durable(&live) {
            assert!(listed.contains(&event.data), "{} is not in the list", event.data);
        }
        let count = serde_json::from_str::<Value>(&listed).unwrap()["events"].as_array().unwrap().len();
        assert_eq!(count, durable(&live).len());
    }
}

/// The text that the pieces of a stream add up to.
fn streamed_text(events: &[SseEvent]) -> String {
    let mut text = String::new();
    for event in events {
        match event.event.as_deref() {
            Some("text-delta") => text.push_str(data(event)["delta"].as_str().unwrap()),
            Some("step-so-far") => {
                let parts = data(event)["parts"].clone();
                text = parts.as_array().unwrap().iter().filter_map(|p| p["text"].as_str()).collect();
            }
            _ => {}
        }
    }
    text
}

#[tokio::test]
async fn a_reader_that_joins_in_the_middle_of_a_step_gets_the_step_so_far() {
    let yard = Yard::new().await;
    let run = yard.say("slow 40").await;
    let path = format!("/api/runs/{run}/stream");
    let open = || async { Stream::new(yard.gateway.secret(Method::GET, &path).send().await.unwrap()) };
    let mut first = open().await;
    first.until("text-delta").await;
    first.until("text-delta").await;
    let mut second = open().await;
    let mut events = Vec::new();
    while let Some(event) = second.next().await {
        events.push(event);
    }
    assert!(events.iter().any(|e| e.event.as_deref() == Some("step-so-far")));
    let reply = events.iter().find(|e| e.event.as_deref() == Some("message.assistant")).unwrap();
    let whole = data(reply)["parts"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(streamed_text(&events), whole, "no piece is missing and none comes twice");
}

#[tokio::test]
async fn a_space_stream_tells_messages_and_runs_in_one_order() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/stream", yard.space);
    let mut live = Stream::new(yard.gateway.user("bob", Method::GET, &path).send().await.unwrap());
    let run = yard.say("hello").await;
    let mut names = Vec::new();
    let mut ids = Vec::new();
    loop {
        let event = live.next().await.unwrap();
        if let Some(id) = &event.id {
            ids.push(id.parse::<i64>().unwrap());
            names.push(event.event.clone().unwrap());
            assert_eq!(data(&event)["smartSpaceId"], json!(yard.space));
        }
        if event.event.as_deref() == Some("run.completed") {
            break;
        }
    }
    assert_eq!(
        names,
        ["smartSpace.message", "run.created", "run.started", "message.assistant", "run.completed"]
    );
    assert!(ids.is_sorted(), "{ids:?}");
    let after = yard.gateway.user("bob", Method::GET, &path).header("last-event-id", ids[2].to_string());
    let mut resumed = Stream::new(after.send().await.unwrap());
    assert_eq!(resumed.next().await.unwrap().id, Some(ids[3].to_string()));
    let runs =
        fine(yard.gateway.user("bob", Method::GET, &format!("/api/smart-spaces/{}/runs", yard.space))).await;
    assert_eq!(runs["runs"][0]["id"], json!(run));
}

#[tokio::test]
async fn two_hundred_and_more_events_are_paged_without_a_gap() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    for n in 0..230 {
        let body = json!({"content": format!("m{n}"), "entityId": yard.ann, "triggerAgents": false});
        fine(yard.gateway.secret(Method::POST, &path).json(&body)).await;
    }
    let stream = yard.gateway.secret(Method::GET, &format!("/api/smart-spaces/{}/stream", yard.space));
    let mut stream = Stream::new(stream.send().await.unwrap());
    for n in 0..230 {
        let event = stream.next().await.unwrap();
        assert_eq!(event.id, Some((n + 1).to_string()));
        assert_eq!(data(&event)["message"]["content"], format!("m{n}"));
    }
}

/// S2 in small: one reader that reads nothing, and one that does.
#[tokio::test]
async fn s2_a_reader_that_does_not_read_is_cut_and_the_others_go_on() {
    use std::io::{Read as _, Write as _};
    let env = [("TOOLYARD_LIMITS_READER_SECONDS", "1")];
    let yard = Yard::on(Gateway::start_with(Folder::new(), &env).await).await;
    let path = format!("/api/smart-spaces/{}/stream", yard.space);
    let mut slow = std::net::TcpStream::connect(yard.gateway.address()).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(slow, "GET {path} HTTP/1.1\r\nhost: localhost\r\nx-secret-key: {SECRET}\r\n\r\n").unwrap();
    let mut quick = Stream::new(yard.gateway.secret(Method::GET, &path).send().await.unwrap());
    let messages = format!("/api/smart-spaces/{}/messages", yard.space);
    for n in 0..16 {
        let body = json!({"content": "x".repeat(900_000), "entityId": yard.ann, "triggerAgents": false});
        fine(yard.gateway.secret(Method::POST, &messages).json(&body)).await;
        assert_eq!(quick.next().await.unwrap().id, Some((n + 1).to_string()));
    }
    eventually("the cut", async || {
        let (_, text) = ask(yard.gateway.bare(Method::GET, "/metrics")).await;
        text.as_str().unwrap().contains("toolyard_sse_readers_cut_total 1")
    })
    .await;
    // What is in the socket can still be read; then it is over.
    let mut got = Vec::new();
    let _ = slow.read_to_end(&mut got);
    assert!(got.len() < 30_000_000, "{}", got.len());
    yard.say("hello").await;
    quick.until("run.completed").await;
}

/// The seat is looked at every 15 seconds, also when there is always news.
#[tokio::test]
async fn a_removed_member_stops_reading_a_busy_stream() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}", yard.space);
    let stream = yard.gateway.user("ann", Method::GET, &format!("{path}/stream"));
    let mut stream = Stream::new(stream.send().await.unwrap());
    let remove = yard.gateway.secret(Method::DELETE, &format!("{path}/members/{}", yard.ann));
    assert_eq!(remove.send().await.unwrap().status(), 204);
    let started = std::time::Instant::now();
    let mut pace = tokio::time::interval(std::time::Duration::from_millis(500));
    loop {
        // Quicker than the stream's own clock.
        pace.tick().await;
        let news = json!({"content": "news", "entityId": yard.bob, "triggerAgents": false});
        fine(yard.gateway.secret(Method::POST, &format!("{path}/messages")).json(&news)).await;
        let ended = stream.next().await.is_none();
        // Before the client itself gives up, which would look like an end too.
        assert!(started.elapsed() < PATIENCE * 4 / 5, "the stream goes on");
        if ended {
            break;
        }
    }
}

#[tokio::test]
async fn an_idle_stream_says_now_and_then_that_it_is_alive() {
    let env = [("TOOLYARD_LIMITS_KEEP_ALIVE_SECONDS", "1")];
    let yard = Yard::on(Gateway::start_with(Folder::new(), &env).await).await;
    for path in
        [format!("/api/smart-spaces/{}/stream", yard.space), format!("/api/entities/{}/stream", yard.ann)]
    {
        let mut stream = yard.gateway.user("ann", Method::GET, &path).send().await.unwrap();
        let (mut heard, comment) = (String::new(), ": keep-alive\n\n");
        while heard.matches(comment).count() < 2 {
            let piece = tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("a silent stream");
            heard.push_str(std::str::from_utf8(&piece.unwrap().expect("the stream ended")).unwrap());
        }
        assert_eq!(heard.replace(comment, ""), "retry: 1000\n\n", "{path}");
    }
}

#[tokio::test]
async fn who_accepts_a_stream_gets_the_run_with_the_message() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let post = |text: &str| {
        let request = yard.gateway.user("ann", Method::POST, &path).header("accept", "text/event-stream");
        request.json(&json!({"content": text}))
    };
    let response = post(CALL).header("idempotency-key", "once").send().await.unwrap();
    assert_eq!(response.status(), 201);
    let run = response.headers()["x-toolyard-run"].to_str().unwrap().to_owned();
    let mut stream = Stream::new(response);
    let call = data(&stream.until("tool-input-available").await)["toolCallId"].clone();
    stream.until("run.waiting_tool").await;
    // The stream stays open over the pause.
    yard.submit(Some("ann"), &run, json!({"callId": call, "result": 1})).await;
    stream.until("run.completed").await;
    assert_eq!(stream.next().await, None);
    // The same request again is the same run, from its beginning.
    let again = post(CALL).header("idempotency-key", "once").send().await.unwrap();
    assert_eq!(again.headers()["x-toolyard-run"], run.as_str());
    let told = durable(&read_all(again).await);
    let listed = durable(
        &read_all(
            yard.gateway.user("ann", Method::GET, &format!("/api/runs/{run}/stream")).send().await.unwrap(),
        )
        .await,
    );
    assert_eq!(told, listed);
    // A bad position is refused before anything is stored.
    let before = yard.gateway.get(&path).await["messages"].as_array().unwrap().len();
    let (status, _) = ask(post("hello").header("last-event-id", "abc")).await;
    assert_eq!(status, 400);
    assert_eq!(yard.gateway.get(&path).await["messages"].as_array().unwrap().len(), before);
}

#[tokio::test]
async fn x7_the_stream_that_answers_a_message_hides_what_private_tools_do() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let said = json!({"content": "call look {\"q\":\"canary-args\"}", "entityId": yard.ann});
    for (request, sees) in [
        (yard.gateway.user("ann", Method::POST, &path), false),
        (yard.gateway.secret(Method::POST, &path), true),
    ] {
        let response = request.header("accept", "text/event-stream").json(&said).send().await.unwrap();
        let events = read_all(response).await;
        assert_eq!(events.last().unwrap().event.as_deref(), Some("run.completed"));
        // What the tool was asked and what it found; the demo model repeats results in words.
        let tools =
            events.iter().filter(|e| e.event.as_deref().is_some_and(|name| name.starts_with("tool-")));
        let told: String = tools.map(|event| event.data.as_str()).collect();
        assert!(told.contains("look"), "{told}");
        assert_eq!(told.contains("canary-args"), sees, "{told}");
        assert_eq!(told.contains("canary-static-output"), sees, "{told}");
    }
}

#[tokio::test]
async fn a_message_that_reaches_no_run_or_several_is_answered_in_json() {
    let yard = Yard::new().await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let post = |body: Value| {
        yard.gateway.user("ann", Method::POST, &path).header("accept", "text/event-stream").json(&body)
    };
    let posted = fine(post(json!({"content": "only this", "triggerAgents": false}))).await;
    assert_eq!(posted["runs"], json!([]));
    let second = yard.gateway.post("/api/entities/agent", json!({"agentId": "assistant"})).await;
    join(&yard.gateway, &yard.space, second["entity"]["id"].as_str().unwrap()).await;
    let posted = fine(post(json!({"content": "hello, both"}))).await;
    assert_eq!(posted["runs"].as_array().unwrap().len(), 2);
    // JSON that is listed first is meant.
    let both =
        yard.gateway.user("ann", Method::POST, &path).header("accept", "application/json, text/event-stream");
    assert_eq!(fine(both.json(&json!({"content": "hello"}))).await["runs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_message_that_no_run_reads_is_answered_in_json() {
    let yard = Yard::new().await;
    let mut busy = crate::yard::agent("assistant");
    busy["loop"] = json!({"onMessage": "reject"});
    yard.gateway.post("/api/agents", json!({"config": busy})).await;
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let post = |user: &str, text: &str| {
        let request = yard.gateway.user(user, Method::POST, &path).header("accept", "text/event-stream");
        request.json(&json!({"content": text}))
    };
    let first = || post("ann", CALL).header("idempotency-key", "first");
    let mut stream = Stream::new(first().send().await.unwrap());
    let waiting = data(&stream.until("run.waiting_tool").await);
    let run = waiting["runId"].as_str().unwrap().to_owned();
    // The agent takes no message while it works: there is nothing to follow.
    let posted = fine(post("bob", "and me?")).await;
    assert_eq!(posted["runs"][0]["disposition"], "rejected");
    // Nor is there when the run is gone: the repeat says what was said.
    yard.gateway.post(&format!("/api/runs/{run}/cancel"), json!({})).await;
    stream.until("run.canceled").await;
    let gone = yard.gateway.secret(Method::DELETE, &format!("/api/runs/{run}")).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    assert_eq!(fine(first()).await["runs"][0]["runId"], json!(run));
}
