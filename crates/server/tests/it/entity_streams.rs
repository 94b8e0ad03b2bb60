//! `GET /api/entities/{entity}/stream`: the spaces of an entity in one stream.
//! S1 and S5 hold for it as for the streams of its spaces.

use std::collections::BTreeMap;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::gateway::{Gateway, ask, fine, message};
use crate::yard::{Stream, Yard, data, durable, join, new_space, new_user};

/// Another space of Ann and the agent.
async fn second_space(yard: &Yard) -> String {
    let space = new_space(&yard.gateway).await;
    join(&yard.gateway, &space, &yard.agent_entity).await;
    join(&yard.gateway, &space, &yard.ann).await;
    space
}

async fn say(yard: &Yard, space: &str, text: &str) {
    let path = format!("/api/smart-spaces/{space}/messages");
    fine(yard.gateway.user("ann", Method::POST, &path).json(&json!({"content": text}))).await;
}

async fn open(request: RequestBuilder) -> Stream {
    Stream::new(request.send().await.unwrap())
}

/// Reads until so many runs have completed.
async fn read(stream: &mut Stream, mut runs: usize) -> Vec<SseEvent> {
    let mut events = Vec::new();
    while runs > 0 {
        let event = stream.next().await.expect("the stream ended");
        runs -= usize::from(event.event.as_deref() == Some("run.completed"));
        events.push(event);
    }
    events
}

/// The durable payloads of each space, in order.
fn by_space(events: &[SseEvent]) -> BTreeMap<String, Vec<String>> {
    let mut spaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in durable(events) {
        let space = data(&event)["smartSpaceId"].as_str().unwrap().to_owned();
        spaces.entry(space).or_default().push(event.data);
    }
    spaces
}

#[tokio::test]
async fn s1_s5_an_entitys_stream_is_the_streams_of_its_spaces_for_each_key_and_resumes_anywhere() {
    let yard = Yard::new().await;
    let other = second_space(&yard).await;
    let path = format!("/api/entities/{}/stream", yard.ann);
    let mut live = open(yard.gateway.user("ann", Method::GET, &path)).await;
    say(&yard, &yard.space, "call look {\"q\":\"x\"}").await;
    say(&yard, &other, "say two").await;
    let live = read(&mut live, 2).await;
    assert!(live.iter().any(|e| e.id.is_none()), "words come as they are said");
    for user in [true, false] {
        let get = |path: &str| match user {
            true => yard.gateway.user("ann", Method::GET, path),
            false => yard.gateway.secret(Method::GET, path),
        };
        let whole = read(&mut open(get(&path)).await, 2).await;
        let mut wanted = BTreeMap::new();
        for space in [&yard.space, &other] {
            let space_path = format!("/api/smart-spaces/{space}/stream");
            wanted.extend(by_space(&read(&mut open(get(&space_path)).await, 1).await));
        }
        assert_eq!(by_space(&whole), wanted);
        let call = whole.iter().find(|e| e.event.as_deref() == Some("tool-input-available")).unwrap();
        assert_eq!(data(call).get("input").is_some(), !user, "a user sees nothing of a private tool");
        if user {
            assert_eq!(by_space(&live), wanted, "live and replayed are the same");
        }
        // After every event, by header and by query: what is missing, once.
        let whole = durable(&whole);
        for (n, event) in whole.iter().enumerate().filter(|(n, _)| n + 1 < whole.len()) {
            let id = event.id.clone().unwrap();
            let left = whole[n + 1..].iter().filter(|e| e.event.as_deref() == Some("run.completed")).count();
            let by_header = get(&path).header("last-event-id", &id);
            let by_query = get(&format!("{path}?since={id}"));
            for request in [by_header, by_query] {
                let rest = read(&mut open(request).await, left).await;
                assert_eq!(by_space(&rest), by_space(&whole[n + 1..]), "after {n}");
            }
        }
    }
}

#[tokio::test]
async fn an_entitys_stream_follows_it_into_spaces_and_out_of_them() {
    let yard = Yard::new().await;
    let path = format!("/api/entities/{}/stream", yard.ann);
    let mut user = open(yard.gateway.user("ann", Method::GET, &path)).await;
    let mut backend = open(yard.gateway.secret(Method::GET, &path)).await;
    // What was said before it came is told from the beginning.
    let other = new_space(&yard.gateway).await;
    let post = |space: &str, text: &str| {
        let body = json!({"content": text, "entityId": yard.bob, "triggerAgents": false});
        yard.gateway.secret(Method::POST, &format!("/api/smart-spaces/{space}/messages")).json(&body)
    };
    join(&yard.gateway, &other, &yard.bob).await;
    fine(post(&other, "before")).await;
    join(&yard.gateway, &other, &yard.ann).await;
    for stream in [&mut user, &mut backend] {
        let told = stream.until("smartSpace.message").await;
        assert_eq!(data(&told)["smartSpaceId"], json!(other));
        assert!(told.data.contains("before"), "{}", told.data);
    }
    let seat = format!("/api/smart-spaces/{other}/members/{}", yard.ann);
    assert_eq!(yard.gateway.secret(Method::DELETE, &seat).send().await.unwrap().status(), 204);
    // It is noticed within seconds; what is said from then on is not told.
    let mut pace = tokio::time::interval(std::time::Duration::from_millis(200));
    let started = std::time::Instant::now();
    for (n, stream) in [&mut user, &mut backend].into_iter().enumerate() {
        loop {
            pace.tick().await;
            fine(post(&other, "there")).await;
            let marker = format!("here {n} {:?}", started.elapsed());
            fine(post(&yard.space, &marker)).await;
            let mut there = false;
            loop {
                let told = stream.until("smartSpace.message").await;
                there |= told.data.contains("there");
                if told.data.contains(&marker) {
                    break;
                }
            }
            assert!(started.elapsed() < crate::gateway::PATIENCE * 4 / 5, "the space is still told of");
            // A marker may overtake another space's words once; twice it does not.
            if !there && started.elapsed() > std::time::Duration::from_secs(3) {
                break;
            }
        }
    }
}

#[tokio::test]
async fn x6_an_entitys_stream_is_for_itself_and_its_backend() {
    let yard = Yard::new().await;
    let path = format!("/api/entities/{}/stream", yard.ann);
    let (status, body) = ask(yard.gateway.user("bob", Method::GET, &path)).await;
    assert_eq!((status.as_u16(), message(&body)), (403, "A user follows only their own spaces"));
    assert_eq!(ask(yard.gateway.bare(Method::GET, &path)).await.0, 401);
    assert_eq!(ask(yard.gateway.secret(Method::GET, "/api/entities/ent_none/stream")).await.0, 404);
    for garbage in ["7", "abc", "!", "c3BhY2U"] {
        let (status, body) =
            ask(yard.gateway.secret(Method::GET, &path).header("last-event-id", garbage)).await;
        assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("invalid_cursor")), "{garbage}");
    }
    // A stolen position does not open another's space: places of others are forgotten.
    yard.say("say hello").await;
    let mut ann = open(yard.gateway.user("ann", Method::GET, &path)).await;
    let id = ann.until("run.completed").await.id.unwrap();
    let eve = yard.gateway.get("/api/entities?externalId=eve").await["entities"][0]["id"].clone();
    let path = format!("/api/entities/{}/stream", eve.as_str().unwrap());
    let mut eve = open(yard.gateway.user("eve", Method::GET, &path).header("last-event-id", &id)).await;
    let space = new_space(&yard.gateway).await;
    let entity = path.split('/').nth(3).unwrap();
    join(&yard.gateway, &space, entity).await;
    let post = json!({"content": "hers", "entityId": entity, "triggerAgents": false});
    yard.gateway.post(&format!("/api/smart-spaces/{space}/messages"), post).await;
    let first = eve.next().await.unwrap();
    assert_eq!(data(&first)["smartSpaceId"], json!(space), "nothing of Ann's space comes before");
}

#[tokio::test]
async fn an_entity_of_very_many_spaces_is_told_to_follow_them_one_by_one() {
    let gateway = Gateway::start().await;
    let ann = new_user(&gateway, "ann").await;
    let limit = toolyard_protocol::limits::ENTITY_SPACES;
    for _ in 0..=limit {
        let space = new_space(&gateway).await;
        join(&gateway, &space, &ann).await;
    }
    let (status, body) = ask(gateway.user("ann", Method::GET, &format!("/api/entities/{ann}/stream"))).await;
    assert_eq!(status, 400);
    let wanted: Value = json!({"code": "bad_request", "limit": limit,
        "message": format!("The entity is in more than {limit} spaces. Follow its spaces one by one")});
    assert_eq!(body["error"], wanted);
}
