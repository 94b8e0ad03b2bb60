//! The plugins that ship.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_plugins::hooks::{
    Answer, Chain, Cited, Ended, Hook, Left, Prompt, Scene, SpanKind, Spoken, State,
};
use toolyard_plugins::shipped::{self, PiiFilter, SHIPPED};
use toolyard_protocol::run::{FinishReason, Usage};
use toolyard_protocol::{CallId, EntityId, OutcomeKind, RunId};

fn made(id: &str, options: Value) -> Arc<dyn Hook> {
    shipped::make(id, &options).unwrap().unwrap()
}

fn chain(hook: Arc<dyn Hook>, provider: &str) -> Chain {
    let scene = Scene {
        run: RunId::mint(),
        agent: "assistant".to_owned(),
        client: Some(EntityId::mint()),
        thread: None,
        provider: provider.to_owned(),
        model: "demo-1".to_owned(),
        spoken: None,
        message: "msg_1".to_owned(),
        step: 1,
        trace: None,
    };
    Chain::new(vec![hook].into(), scene, State::new())
}

fn cited(url: &str, span: Option<(u32, u32)>) -> Cited {
    let (start_index, end_index) = span.unzip();
    Cited { url: url.to_owned(), title: Some("A title".to_owned()), start_index, end_index }
}

async fn cite(options: Value, provider: &str, answer: Answer) -> (String, Left) {
    let mut chain = chain(made("citations", options), provider);
    let mut answer = answer;
    chain.agent_response(&mut answer).await.unwrap();
    (answer.text, chain.leave())
}

fn spoken(text: &str, sources: Vec<Cited>) -> Answer {
    Answer { text: text.to_owned(), sources, ..Answer::default() }
}

#[tokio::test]
async fn u15_u17_u18_u21_u22_marks_stand_behind_what_they_support_counted_in_characters() {
    let sources = vec![
        cited("https://a.example", Some((0, 5))),
        cited("https://b.example", Some((6, 8))),
        cited("https://c.example", Some((6, 8))),
        cited("https://d.example", Some((0, 99))),
        cited("https://e.example", None),
    ];
    let (text, left) = cite(json!({}), "openai.responses", spoken("Ærøá🙂 ok.", sources)).await;
    assert_eq!(text, "Ærøá🙂[1] ok[2][3].");
    let event = &left.emitted[0];
    assert_eq!((event.plugin.as_str(), event.name.as_str()), ("citations", "citation"));
    assert_eq!(event.value["messageId"], "msg_1");
    let list = event.value["citations"].as_array().unwrap();
    assert_eq!(list.len(), 5, "those without a mark are listed too");
    assert_eq!(
        list[0],
        json!({"id": "cite-1", "number": 1, "type": "url", "url": "https://a.example", "title": "A title", "startIndex": 0, "endIndex": 5})
    );
    assert_eq!(left.state["citations"], event.value["citations"]);
}

#[tokio::test]
async fn spec_32_footnotes_and_other_event_names_are_options() {
    let sources = vec![cited("https://a.example", Some((0, 2)))];
    let options = json!({"markers": "footnote", "eventName": "sources"});
    let (text, left) = cite(options, "gemini", spoken("Hi", sources)).await;
    assert_eq!((text.as_str(), left.emitted[0].name.as_str()), ("Hi[^1]", "sources"));
}

#[tokio::test]
async fn u19_sources_of_anthropic_have_no_places_and_change_no_text() {
    let sources = vec![cited("https://a.example", Some((0, 2)))];
    let (text, left) = cite(json!({}), "anthropic", spoken("Hi", sources)).await;
    assert_eq!(text, "Hi");
    assert_eq!(left.emitted[0].value["citations"][0]["endIndex"], Value::Null);
}

#[tokio::test]
async fn u16_u28_u29_an_unknown_provider_and_an_answer_without_sources_stay_as_they_are() {
    let sources = vec![cited("https://a.example", Some((0, 2)))];
    for (provider, sources) in [("mystery", sources), ("openai", vec![])] {
        let (text, left) = cite(json!({}), provider, spoken("Hi", sources)).await;
        assert_eq!((text.as_str(), left.emitted.len()), ("Hi", 0), "{provider}");
    }
}

#[tokio::test]
async fn u26_documents_that_tools_found_are_cited_by_their_id() {
    let found = |name: &str, result| Ended {
        id: CallId::mint(),
        name: name.to_owned(),
        outcome: OutcomeKind::Ok,
        result,
    };
    let answer = Answer {
        text: "It is so.".to_owned(),
        tool_results: vec![
            found(
                "searchKnowledge",
                json!({"results": [{"documentId": "doc_1", "title": "Rules", "text": "so it is"}]}),
            ),
            found("myRag", json!([{"url": "https://kb.example/7", "title": "Seven"}, {"no": "document"}])),
            found("other", json!("text")),
        ],
        ..Answer::default()
    };
    let (text, left) = cite(json!({}), "openai", answer).await;
    assert_eq!(text, "It is so.");
    let list = &left.emitted[0].value["citations"];
    assert_eq!(list[0]["type"], "document");
    assert_eq!((&list[0]["documentId"], &list[0]["toolName"]), (&json!("doc_1"), &json!("searchKnowledge")));
    assert_eq!((&list[1]["type"], &list[1]["url"]), (&json!("url"), &json!("https://kb.example/7")));
    assert_eq!(list.as_array().unwrap().len(), 2);
}

fn pii() -> PiiFilter {
    PiiFilter::new(toolyard_plugins::shipped::PiiOptions::default()).unwrap()
}

#[test]
fn u26_what_names_a_person_is_found_in_its_many_forms() {
    let filter = pii();
    for (text, clean) in [
        ("write to ada.love+x@mail.example.org!", "write to [email]!"),
        ("ADA@EXAMPLE.COM", "[email]"),
        ("call +49 (0)30 1234-5678 now", "call [phone] now"),
        ("030/12345678", "[phone]"),
        ("0049 30 12345678", "[phone]"),
        ("DE89 3704 0044 0532 0130 00", "[iban]"),
        ("iban gb82west12345698765432.", "iban [iban]."),
        ("pay DE89370400440532013000 today", "pay [iban] today"),
        ("card 4111 1111 1111 1111", "card [card]"),
        ("card 5500-0055-5555-5559 ok", "card [card] ok"),
    ] {
        assert_eq!(filter.clean(text), clean, "{text}");
    }
}

#[test]
fn numbers_that_name_nobody_stay() {
    let filter = pii();
    for text in [
        "order 4111 1111 1111 1112",
        "DE00 ABCD EFGH IJKL MNOP is no account",
        "version 1.2.3, 2026-11-16 06:07, 12:30",
        "1234567890123456789012345",
        "3.14159265358979",
        "user at example dot com",
        "room 0123",
    ] {
        assert_eq!(filter.clean(text), text);
    }
}

#[tokio::test]
async fn u26_a_bad_pattern_is_told_and_a_good_one_is_used() {
    let refused = shipped::make("pii-filter", &json!({"patterns": [{"name": "x", "pattern": "("}]}));
    assert!(refused.unwrap().unwrap_err().contains("\"x\" is not a regular expression"));
    let hook =
        made("pii-filter", json!({"kinds": [], "patterns": [{"name": "badge", "pattern": "B-[0-9]+"}]}));
    let mut text = "B-17 of a@b.example".to_owned();
    chain(hook, "demo").text_end(&mut text).await.unwrap();
    assert_eq!(text, "[badge] of a@b.example");
}

#[tokio::test]
async fn u26_a_person_who_asks_too_often_is_told_how_long_to_wait() {
    let hook = made("rate-limit", json!({"turns": 2, "perSeconds": 60}));
    for _ in 0..2 {
        let mut chain = chain_for(&hook, "ada");
        chain.user_message(&mut Prompt::default()).await.unwrap();
        // More steps of one turn count once.
        chain.user_message(&mut Prompt::default()).await.unwrap();
    }
    let stopped = chain_for(&hook, "ada").user_message(&mut Prompt::default()).await.unwrap_err();
    assert!(stopped.error.to_string().starts_with("Rate limit exceeded. Please try again in "), "{stopped}");
    chain_for(&hook, "bob").user_message(&mut Prompt::default()).await.unwrap();
}

#[tokio::test]
async fn u26_what_a_person_spends_is_counted_at_the_end_of_each_turn() {
    let hook = made("rate-limit", json!({"costUsd": 0.5, "perSeconds": 60}));
    let mut chain = chain_for(&hook, "ada");
    let mut answer = spoken("ok", vec![]);
    for cost in [200_000, 400_000] {
        chain.user_message(&mut Prompt::default()).await.unwrap();
        // The answer tells the cost of the whole run so far.
        answer.cost = Some(cost);
        chain.agent_response(&mut answer).await.unwrap();
    }
    let mut next = chain_for(&hook, "ada");
    next.user_message(&mut Prompt::default()).await.unwrap();
    answer.cost = Some(100_000);
    next.agent_response(&mut answer).await.unwrap();
    let stopped = chain_for(&hook, "ada").user_message(&mut Prompt::default()).await.unwrap_err();
    let text = stopped.error.to_string();
    assert!(text.starts_with("Budget exceeded: 0.5 of 0.5 dollars in 60 seconds."), "{text}");
    // Who bounds dollars alone does not bound turns.
    for _ in 0..30 {
        chain_for(&hook, "bob").user_message(&mut Prompt::default()).await.unwrap();
    }
}

fn chain_for(hook: &Arc<dyn Hook>, who: &str) -> Chain {
    let client = EntityId::parse(&format!("ent_{who:0>26}")).ok().or_else(|| EntityId::parse(who).ok());
    let scene = Scene {
        run: RunId::mint(),
        agent: "assistant".to_owned(),
        client,
        thread: None,
        provider: "demo".to_owned(),
        model: "demo-1".to_owned(),
        spoken: None,
        message: "msg_1".to_owned(),
        step: 1,
        trace: None,
    };
    Chain::new(vec![hook.clone()].into(), scene, State::new())
}

#[test]
fn every_plugin_that_ships_can_be_made_and_refuses_options_it_does_not_know() {
    for id in SHIPPED {
        assert_eq!(made(id, Value::Null).id(), id);
        assert!(shipped::make(id, &json!({"nonsense": 1})).unwrap().is_err(), "{id}");
    }
    assert!(shipped::make("unknown", &Value::Null).is_none());
}

#[tokio::test]
async fn u26_hits_of_a_tool_of_ones_own_are_cited_once_each() {
    let hit = |id: &str, title: &str| json!({"key": id, "head": {"de": title}, "text": "Größe ".repeat(99)});
    let ended = |name: &str, outcome, result: Value| Ended {
        id: CallId::mint(),
        name: name.to_owned(),
        outcome,
        result,
    };
    let answer = Answer {
        text: "ok".to_owned(),
        tool_results: vec![
            ended(
                "find",
                OutcomeKind::Ok,
                json!({"a": {"hits": [hit("d1", "Maße"), hit("d1", "Maße"), {"link": "https://e.example"}, {}, 7]}}),
            ),
            ended("find", OutcomeKind::Failed, json!({"a": {"hits": [hit("d2", "x")]}})),
            ended("other", OutcomeKind::Ok, json!({"a": {"hits": [hit("d3", "x")]}})),
        ],
        ..Answer::default()
    };
    let options = json!({"tools": ["find"], "list": "/a/hits", "documentId": "/key", "url": "/link", "title": "/head/de", "snippet": "/text"});
    let mut chain = chain(made("rag-citations", options), "demo");
    chain.agent_response(&mut answer.clone()).await.unwrap();
    let left = chain.leave();
    assert_eq!(left.emitted[0].name, "rag-citation");
    let list = left.emitted[0].value["citations"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!((&list[0]["documentId"], &list[0]["title"]), (&json!("d1"), &json!("Maße")));
    assert_eq!(list[0]["snippet"].as_str().unwrap().chars().count(), 300);
    assert_eq!((&list[1]["number"], &list[1]["url"]), (&json!(2), &json!("https://e.example")));
}

#[tokio::test]
async fn u26_a_turn_becomes_spans_and_the_next_one_a_trace_of_its_own() {
    let mut chain = chain(made("tracing", json!({})), "gemini");
    for _ in 0..2 {
        chain.user_message(&mut Prompt::default()).await.unwrap();
        let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
        chain.spoke(Spoken { model: "demo-2".to_owned(), finish: FinishReason::Stop, usage });
        let mut answer = Answer { text: "canary".to_owned(), cost: Some(1_500_000), ..Answer::default() };
        chain.agent_response(&mut answer).await.unwrap();
    }
    let left = chain.leave();
    assert_eq!(left.state, State::new(), "nothing is kept behind the end of a turn");
    let names: Vec<&str> = left.spans.iter().map(|span| span.name.as_str()).collect();
    let turn = ["chat demo-1", "invoke_agent assistant"];
    assert_eq!(names, [turn, turn].concat());
    let (chat, root) = (&left.spans[0], &left.spans[1]);
    assert_eq!((root.parent.as_ref(), chat.parent.as_ref()), (None, Some(&root.id)));
    assert_eq!((root.kind, chat.kind), (SpanKind::Internal, SpanKind::Client));
    for (name, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("gcp.gemini")),
        ("gen_ai.request.model", json!("demo-1")),
        ("gen_ai.response.model", json!("demo-2")),
        ("gen_ai.response.finish_reasons", json!(["stop"])),
        ("gen_ai.usage.input_tokens", json!(7)),
        ("gen_ai.usage.output_tokens", json!(3)),
    ] {
        assert!(chat.attributes.contains(&(name.to_owned(), value)), "{name}: {chat:?}");
    }
    assert!(root.attributes.contains(&("gen_ai.usage.cost".to_owned(), json!(1.5))), "{root:?}");
    assert!(root.attributes.contains(&("gen_ai.agent.name".to_owned(), json!("assistant"))), "{root:?}");
    assert_ne!(root.trace, left.spans[3].trace);
    assert!(root.start <= chat.start && chat.end <= root.end);
    assert!(!format!("{:?}", left.spans).contains("canary"), "words are left out unless they are wanted");
}
