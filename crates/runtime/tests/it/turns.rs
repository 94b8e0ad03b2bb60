//! Turns of conversations whose clients keep the history, told on both databases.

use serde_json::json;
use toolyard_dialects::telling::Start;
use toolyard_engine::facts::Answer;
use toolyard_models::scripted::Reply as Line;
use toolyard_protocol::event::Event;
use toolyard_protocol::message::Part;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{CallId, EntityId, ErrorCode, MessageId, OutcomeKind};
use toolyard_runtime::{Turn, Turned};

use crate::chat::{Chat, answer, assistant, called, output, pairs, stories, user};
use crate::yard::{Base, client_tool, config, static_tool};

stories! {
    a_thread_belongs_to_its_owner_and_goes_on_under_its_name,
    h13_h14_outputs_come_back_with_the_history_and_cost_one_more_turn,
    a_repeated_turn_attaches_and_calls_no_model_twice,
    late_and_forged_outputs_run_nothing,
    an_endless_repeat_of_outputs_is_refused,
    a_new_message_instead_of_an_output_closes_the_call,
    h1_h15_a_clients_tools_hold_for_one_request,
    h65_a_clients_tool_never_shadows_an_agents,
    approvals_count_only_through_the_ledger,
    steps_count_anew_with_each_result_turn,
    a_space_is_a_thread_for_its_members_only,
    an_output_and_a_message_in_one_request_are_heard_together,
    what_another_member_holds_of_a_call_is_no_answer,
}

async fn a_thread_belongs_to_its_owner_and_goes_on_under_its_name(base: Base) {
    let chat =
        Chat::new(base, json!([]), vec![Line::saying("one"), Line::saying("two"), Line::saying("three")])
            .await;
    let first = chat.say("u1", "hello").await;
    assert_eq!((first.start.clone(), first.fresh), (Start::Turn(1), true));
    chat.done(&first).await;
    let items = vec![
        user("u1", "hello"),
        assistant(first.message.as_str(), vec![Part::text("what the client makes of it")]),
        user("u2", "again"),
    ];
    let second = chat.take(chat.turn(items.clone())).await;
    chat.done(&second).await;
    assert_eq!(second.space, first.space);
    assert_ne!(second.message, first.message);
    // What the gateway said comes from the store, whatever the client says it was.
    assert_eq!(chat.heard(1), pairs(&[("user", "hello"), ("assistant", "one"), ("user", "again")]));
    let other =
        chat.take(Turn { by: chat.as_user(&chat.yard.bob), ..chat.turn(vec![user("u1", "mine")]) }).await;
    chat.done(&other).await;
    assert_ne!(other.space, first.space, "the same name of somebody else is another thread");
    assert_eq!(chat.heard(2), pairs(&[("user", "mine")]));
}

async fn h13_h14_outputs_come_back_with_the_history_and_cost_one_more_turn(base: Base) {
    let call = Line::calling(&[("ask", json!({"n": 1}))]);
    let chat = Chat::new(base, json!([client_tool("ask")]), vec![call, Line::saying("thanks")]).await;
    let first = chat.say("u1", "go").await;
    let call = chat.open_call(&first.run).await;
    let history = vec![user("u1", "go"), assistant(first.message.as_str(), vec![called(&call)])];
    let next = Turn { replies: vec![output(&call, json!({"city": "Oslo"}))], ..chat.turn(history) };
    let second = chat.take(next).await;
    chat.done(&second).await;
    assert_eq!((&second.run, &second.message), (&first.run, &first.message), "the same answer goes on");
    assert_eq!(second.kept, [call]);
    let Start::After(seq) = second.start else { panic!("{:?}", second.start) };
    let events = chat.yard.events(&first.run).await;
    assert!(matches!(events[usize::try_from(seq).unwrap() - 1], Event::ModelReplied(_)));
    assert_eq!(chat.upstream.requests().len(), 2);
    assert_eq!(chat.text(&second.message).await, "thanks");
}

async fn a_repeated_turn_attaches_and_calls_no_model_twice(base: Base) {
    let call = Line::calling(&[("ask", json!({}))]);
    let chat = Chat::new(base, json!([client_tool("ask")]), vec![call, Line::saying("thanks")]).await;
    let first = chat.say("u1", "go").await;
    let again = chat.say("u1", "go").await;
    assert_eq!((&again.run, &again.message, again.fresh), (&first.run, &first.message, false));
    assert_eq!(again.start, Start::Turn(1));
    let call = chat.open_call(&first.run).await;
    let history = || vec![user("u1", "go"), assistant(first.message.as_str(), vec![called(&call)])];
    let next = || Turn { replies: vec![output(&call, json!(1))], ..chat.turn(history()) };
    // Many at once: one of them is heard, all are answered by the same run.
    let rt = chat.yard.rt.clone();
    let all = futures::future::join_all((0..8).map(|_| rt.turn(next()))).await;
    let all: Vec<Turned> = all.into_iter().map(Result::unwrap).collect();
    chat.done(&first).await;
    assert!(all.iter().all(|turned| turned.run == first.run && turned.start == all[0].start), "{all:?}");
    let late = chat.take(next()).await;
    assert_eq!(late.start, all[0].start);
    assert_eq!(chat.upstream.requests().len(), 2);
}

async fn late_and_forged_outputs_run_nothing(base: Base) {
    let call = Line::calling(&[("ask", json!({}))]);
    let chat =
        Chat::new(base, json!([client_tool("ask")]), vec![call, Line::saying("a"), Line::saying("b")]).await;
    let first = chat.say("u1", "go").await;
    let call = chat.open_call(&first.run).await;
    let history = |parts: Vec<Part>| vec![user("u1", "go"), assistant(first.message.as_str(), parts)];
    let forged = CallId::mint();
    let forging =
        Turn { replies: vec![output(&forged, json!("evil"))], ..chat.turn(history(vec![called(&forged)])) };
    assert_eq!(chat.refused(forging).await.code, ErrorCode::WaitEnded);
    // Somebody else's call is not theirs to answer, whatever their history says.
    let stranger = Turn {
        by: chat.as_user(&chat.yard.bob),
        replies: vec![output(&call, json!("evil"))],
        ..chat.turn(vec![user("u1", "go"), assistant("a9", vec![called(&call)]), user("u2", "so?")])
    };
    let theirs = chat.take(stranger).await;
    assert_ne!(theirs.space, first.space);
    assert_eq!(chat.yard.open_waits(&first.run).await.len(), 1);
    chat.yard.submit(&first.run, &call, json!("first")).await.unwrap();
    chat.done(&first).await;
    let late =
        Turn { replies: vec![output(&call, json!("late"))], ..chat.turn(history(vec![called(&call)])) };
    let late = chat.take(late).await;
    assert_eq!((&late.run, late.kept.len()), (&first.run, 0), "the stored outcome stands and is told");
    let events = chat.yard.events(&first.run).await;
    let ends: Vec<_> = events.iter().filter(|e| matches!(e, Event::ToolReturned(_))).collect();
    assert_eq!(ends.len(), 1);
}

async fn an_endless_repeat_of_outputs_is_refused(base: Base) {
    let call = Line::calling(&[("ask", json!({}))]);
    let chat = Chat::new(base, json!([client_tool("ask")]), vec![call, Line::refusal(400, "no")]).await;
    let first = chat.say("u1", "go").await;
    let call = chat.open_call(&first.run).await;
    let history = || vec![user("u1", "go"), assistant(first.message.as_str(), vec![called(&call)])];
    let without = chat.turn(history());
    assert_eq!(chat.refused(without).await.code, ErrorCode::WaitEnded, "it brings nothing");
    let next = || Turn { replies: vec![output(&call, json!(1))], ..chat.turn(history()) };
    chat.take(next()).await;
    chat.yard.until(&first.run, RunStatus::Failed).await;
    // The failure is told; a canceled run has nothing to tell.
    chat.take(next()).await;
    assert_eq!(chat.upstream.requests().len(), 2);
}

async fn a_new_message_instead_of_an_output_closes_the_call(base: Base) {
    let call = Line::calling(&[("ask", json!({}))]);
    let chat = Chat::new(base, json!([client_tool("ask")]), vec![call, Line::saying("fine")]).await;
    let first = chat.say("u1", "go").await;
    let call = chat.open_call(&first.run).await;
    let items = vec![
        user("u1", "go"),
        assistant(first.message.as_str(), vec![called(&call)]),
        user("u2", "never mind"),
    ];
    let second = chat.take(chat.turn(items)).await;
    chat.done(&second).await;
    assert_eq!(second.run, first.run);
    assert_eq!(second.message, MessageId::of_turn(&first.run, 2));
    assert!(matches!(second.start, Start::Taking(_)));
    let heard = chat.heard(1);
    assert_eq!(heard.last(), pairs(&[("user", "never mind")]).first());
    assert!(heard[2].1.contains("Cancelled: user provided new input"), "{heard:?}");
}

async fn h1_h15_a_clients_tools_hold_for_one_request(base: Base) {
    let call = Line::calling(&[("locate", json!({}))]);
    let lines = vec![call, Line::saying("thanks"), Line::saying("none")];
    let agent = config(json!([static_tool("look"), static_tool("smell")]), json!({}));
    let chat = Chat::with(base, agent, lines).await;
    let offered = |n: usize| -> Vec<String> {
        let body = chat.upstream.requests()[n].body.clone();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|t| t["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let picks =
        toolyard_protocol::picks::Picks { tools: [("smell".to_owned(), false)].into(), ..Default::default() };
    let first =
        Turn { tools: chat.brought(&["locate"]), picks: Some(picks), ..chat.turn(vec![user("u1", "go")]) };
    let first = chat.take(first).await;
    let call = chat.open_call(&first.run).await;
    assert_eq!(offered(0), ["look", "locate"], "a pick takes away only the agent's");
    let history = vec![user("u1", "go"), assistant(first.message.as_str(), vec![called(&call)])];
    let next = Turn {
        replies: vec![output(&call, json!(1))],
        tools: chat.brought(&["paint", "locate"]),
        ..chat.turn(history)
    };
    let second = chat.take(next).await;
    chat.done(&second).await;
    assert_eq!(offered(1), ["look", "paint", "locate"]);
    let third = chat.say("u2", "and now?").await;
    chat.done(&third).await;
    assert_eq!(offered(2), ["look", "smell"], "nothing of it stays");
}

async fn h65_a_clients_tool_never_shadows_an_agents(base: Base) {
    let chat = Chat::new(base, json!([static_tool("look")]), vec![]).await;
    let turn = Turn { tools: chat.brought(&["look"]), ..chat.turn(vec![user("u1", "go")]) };
    let refused = chat.refused(turn).await;
    assert_eq!(refused.code, ErrorCode::ToolNameConflict);
    assert!(chat.upstream.requests().is_empty());
}

async fn approvals_count_only_through_the_ledger(base: Base) {
    let mut pay = static_tool("pay");
    pay["approval"] = json!("ask");
    let lines = || Line::calling(&[("pay", json!({}))]);
    let chat =
        Chat::new(base, json!([pay]), vec![lines(), Line::saying("paid"), lines(), Line::saying("kept")])
            .await;
    let first = chat.say("u1", "pay").await;
    let call = chat.open_call(&first.run).await;
    let history = |turned: &Turned, call: &CallId| {
        vec![user("u1", "pay"), assistant(turned.message.as_str(), vec![called(call)])]
    };
    // An output of a call that nobody allowed is no answer.
    let forged = Turn { replies: vec![output(&call, json!("paid"))], ..chat.turn(history(&first, &call)) };
    assert_eq!(chat.refused(forged).await.code, ErrorCode::WaitEnded);
    let allow = || Turn {
        replies: vec![answer(&call, Answer::Allow { edited: None })],
        ..chat.turn(history(&first, &call))
    };
    let second = chat.take(allow()).await;
    chat.done(&second).await;
    assert_eq!((&second.run, &second.message), (&first.run, &first.message));
    let again = chat.take(allow()).await;
    assert_eq!(again.start, second.start, "a repeat replays");
    let third = chat.say("u2", "pay again").await;
    let other = chat.open_call(&third.run).await;
    let deny = Answer::Deny { message: Some("too much".to_owned()) };
    let denied = Turn {
        replies: vec![answer(&call, deny.clone()), answer(&other, deny)],
        ..chat.turn(vec![user("u2", "pay again"), assistant(third.message.as_str(), vec![called(&other)])])
    };
    let denied = chat.take(denied).await;
    chat.done(&denied).await;
    let events = chat.yard.events(&third.run).await;
    assert!(events.iter().any(|e| matches!(e, Event::ToolReturned(r) if r.outcome == OutcomeKind::Denied)));
    assert!(chat.heard(3).last().unwrap().1.contains("too much"));
}

async fn steps_count_anew_with_each_result_turn(base: Base) {
    let call = || Line::calling(&[("ask", json!({}))]);
    let agent = config(json!([client_tool("ask")]), json!({"loop": {"maxSteps": 1}}));
    let chat = Chat::with(base, agent, vec![call(), call(), Line::saying("done")]).await;
    let first = chat.say("u1", "go").await;
    for n in 0..2 {
        let call = chat.open_call(&first.run).await;
        let history = vec![user("u1", "go"), assistant(first.message.as_str(), vec![called(&call)])];
        chat.take(Turn { replies: vec![output(&call, json!(n))], ..chat.turn(history) }).await;
        chat.upstream.requests_reach(n + 2).await;
    }
    chat.done(&first).await;
    let with_tools: Vec<bool> = chat.upstream.requests().iter().map(|r| r.body["tools"].is_array()).collect();
    assert_eq!(with_tools, [true, true, true]);
}

async fn a_space_is_a_thread_for_its_members_only(base: Base) {
    let chat =
        Chat::new(base, json!([]), vec![Line::saying("one"), Line::saying("two"), Line::saying("three")])
            .await;
    let space = chat.yard.space.to_string();
    let inside = chat.take(Turn { thread: space.clone(), ..chat.turn(vec![user("u1", "hi")]) }).await;
    chat.done(&inside).await;
    assert_eq!(inside.space.as_str(), space);
    let stranger = EntityId::mint();
    let outside =
        Turn { thread: space.clone(), by: chat.as_user(&stranger), ..chat.turn(vec![user("u1", "hi")]) };
    let outside = chat.take(outside).await;
    assert_ne!(outside.space.as_str(), space, "a name is all that it is to a stranger");
    chat.done(&outside).await;
    let backend = chat.take(Turn { by: chat.yard.secret(), ..chat.turn(vec![user("u1", "hi")]) }).await;
    chat.done(&backend).await;
    assert!(backend.viewer.sees_all());
    let following = chat.yard.rt.follow(chat.yard.secret(), "chat-1".to_owned()).await.unwrap().unwrap();
    assert_eq!((following.run, following.status), (backend.run, RunStatus::Completed));
    assert_eq!(chat.yard.rt.follow(chat.as_user(&chat.yard.bob), "chat-1".to_owned()).await.unwrap(), None);
}

async fn an_output_and_a_message_in_one_request_are_heard_together(base: Base) {
    let call = Line::calling(&[("ask", json!({}))]);
    let chat = Chat::new(base, json!([client_tool("ask")]), vec![call, Line::saying("both")]).await;
    let first = chat.say("u1", "go").await;
    let call = chat.open_call(&first.run).await;
    let items = vec![
        user("u1", "go"),
        assistant(first.message.as_str(), vec![called(&call)]),
        user("u2", "and be quick"),
    ];
    let turn = Turn { replies: vec![output(&call, json!("it"))], ..chat.turn(items) };
    let second = chat.take(turn).await;
    chat.done(&second).await;
    assert_eq!((&second.run, &second.message), (&first.run, &MessageId::of_turn(&first.run, 2)));
    let heard = chat.heard(1);
    let last = [("tool", "it"), ("user", "and be quick")];
    assert_eq!(heard[heard.len() - 2..], pairs(&last)[..]);
    assert_eq!(chat.upstream.requests().len(), 2, "one answer to both");
}

async fn what_another_member_holds_of_a_call_is_no_answer(base: Base) {
    let call = Line::calling(&[("ask", json!({}))]);
    let lines = vec![call, Line::saying("thanks"), Line::saying("hello bob")];
    let chat = Chat::new(base, json!([client_tool("ask")]), lines).await;
    let space = chat.yard.space.to_string();
    let first = chat.take(Turn { thread: space.clone(), ..chat.turn(vec![user("u1", "go")]) }).await;
    let call = chat.open_call(&first.run).await;
    let bobs = |items| Turn {
        thread: space.clone(),
        by: chat.as_user(&chat.yard.bob),
        replies: vec![output(&call, json!("bobs"))],
        ..chat.turn(items)
    };
    let history = vec![user("u1", "go"), assistant(first.message.as_str(), vec![called(&call)])];
    assert_eq!(chat.refused(bobs(history.clone())).await.code, ErrorCode::WaitEnded);
    assert_eq!(chat.yard.open_waits(&first.run).await.len(), 1);
    chat.yard.submit(&first.run, &call, json!("adas")).await.unwrap();
    chat.done(&first).await;
    // Their own message goes through, whatever their history holds.
    let second = chat.take(bobs([history, vec![user("b1", "hi")]].concat())).await;
    chat.done(&second).await;
    assert_eq!(chat.text(&second.message).await, "hello bob");
}
