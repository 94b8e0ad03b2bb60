//! The worker loop: every call is executed once, whatever dies in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_client::{
    CallContext, CancellationToken, Client, ClientError, EventKind, Failure, Journal, JournalError,
    ServeTools, Served, Tool, WaitFilter, tool,
};

use crate::gateway::{Yard, client_tool, eventually};

/// A tool that counts its runs.
fn counting(name: &str, ran: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let ran = ran.clone();
    tool(name).describe("Counts.").run(move |args: Value, _: CallContext| {
        ran.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Failure>(json!({ "got": args })) }
    })
}

fn start(serving: ServeTools) -> (JoinHandle<Result<Served, ClientError>>, CancellationToken) {
    let stop = CancellationToken::new();
    (tokio::spawn(serving.until(stop.clone()).into_future()), stop)
}

fn outcome(events: &[toolyard_client::Event]) -> (String, String) {
    let found = events.iter().find_map(|event| match &event.kind {
        EventKind::Returned(returned) => Some(returned.clone()),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("{events:?}"));
    let said = found.error.unwrap_or_else(|| found.output.unwrap_or_default().to_string());
    (found.outcome.unwrap_or_default(), said)
}

#[tokio::test]
async fn row5_row9_a_worker_answers_what_waits_already_and_what_comes() {
    let yard = Yard::new(json!([client_tool("work"), client_tool("other")])).await;
    let early = yard.say("call work {\"n\": 1}").await;
    let waits = || async {
        let filter = WaitFilter { run: Some(early.clone()), kind: Some("client"), ..WaitFilter::default() };
        let waits = yard.client.waits().list(&filter).await.unwrap();
        (!waits.is_empty()).then_some(())
    };
    eventually("the call waits", waits).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let worker = yard.gateway.builder().name("worker").build().unwrap();
    worker.register_tool(counting("work", &ran)).unwrap();
    let (serving, stop) = start(worker.serve_tools(&yard.space));
    assert_eq!(outcome(&yard.finish(&early).await), ("ok".to_owned(), "{\"got\":{\"n\":1}}".to_owned()));
    let late = yard.say("call work {\"n\": 2}\ncall work {\"n\": 3}").await;
    yard.finish(&late).await;
    stop.cancel();
    assert_eq!(serving.await.unwrap().unwrap().answered, 3);
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    // The gateway knows the program.
    let known = yard.client.request("/api/clients").await.unwrap();
    assert_eq!(
        (&known["clients"][0]["name"], &known["clients"][0]["capabilities"]["tools"]),
        (&json!("worker"), &json!(["work"]))
    );
}

#[tokio::test]
async fn a_run_is_served_to_its_end_also_for_the_runs_below_it() {
    let yard = Yard::new(json!([
        client_tool("work"),
        {"name": "ask_other", "description": "Asks.", "executionType": "ai-agent", "execution": {"agentConfig": {
            "agent": {"name": "below"}, "model": {"provider": "demo", "name": "demo"}, "tools": [client_tool("work")]}},
         "inputSchema": {"type": "object", "properties": {"prompt": {"type": "string"}}}},
    ]))
    .await;
    let ran = Arc::new(AtomicUsize::new(0));
    yard.client.register_tool(counting("work", &ran)).unwrap();
    let run = yard.say("call ask_other {\"prompt\": \"call work {}\"}\ncall work {}").await;
    let served = tokio::time::timeout(crate::gateway::PATIENCE, yard.client.serve_tools(&run).into_future());
    assert_eq!(served.await.unwrap().unwrap().answered, 2);
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn two_workers_share_the_calls_and_none_runs_twice() {
    let yard = Yard::new(json!([client_tool("work")])).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let worker = yard.gateway.client();
            worker.register_tool(counting("work", &ran)).unwrap();
            start(worker.serve_tools(&yard.space))
        })
        .collect();
    for round in 0..4 {
        let run = yard.say("call work {\"n\": 1}\ncall work {\"n\": 2}\ncall work {\"n\": 3}").await;
        yard.finish(&run).await;
        assert_eq!(ran.load(Ordering::SeqCst), 3 * (round + 1));
    }
    let mut answered = 0;
    for (serving, stop) in workers {
        stop.cancel();
        answered += serving.await.unwrap().unwrap().answered;
    }
    assert_eq!(answered, 12);
}

#[tokio::test]
async fn a_worker_lives_through_a_kill_of_the_gateway() {
    let mut yard = Yard::new(json!([client_tool("work")])).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let worker = yard.gateway.client();
    worker.register_tool(counting("work", &ran)).unwrap();
    let (serving, stop) = start(worker.serve_tools(&yard.space));
    let run = yard.say("call work {}").await;
    yard.finish(&run).await;
    yard.gateway.again();
    let run = yard.say("call work {}").await;
    assert_eq!(outcome(&yard.finish(&run).await).0, "ok");
    stop.cancel();
    assert_eq!(serving.await.unwrap().unwrap().answered, 2);
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

/// The journal of a worker that is gone; its last write may still be on its way.
async fn reopened(path: &std::path::Path) -> Journal {
    eventually("the journal is free", || async { Journal::file(path).ok() }).await
}

/// A worker that did its work, and died before anybody was told.
#[tokio::test]
async fn a_crash_between_doing_and_posting_does_not_do_it_twice() {
    let mut yard = Yard::new(json!([client_tool("work")])).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let ran = Arc::new(AtomicUsize::new(0));
    let run = yard.say("call work {\"n\": 1}").await;
    let first = yard.gateway.builder().journal(Journal::file(&path).unwrap()).build().unwrap();
    // The gateway dies while the tool runs, so that the outcome cannot be posted.
    let (count, pid) = (ran.clone(), yard.gateway.pid());
    first
        .register_tool(tool("work").describe("d").run(move |_: Value, _: CallContext| {
            count.fetch_add(1, Ordering::SeqCst);
            let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
            async move {
                assert!(killed.unwrap().success());
                Ok::<_, Failure>(json!("moved"))
            }
        }))
        .unwrap();
    let serving = tokio::spawn(first.serve_tools(&run).into_future());
    eventually("the outcome is written down", || async {
        std::fs::read_to_string(&path).unwrap_or_default().contains("moved").then_some(())
    })
    .await;
    serving.abort();
    let _ = serving.await;
    drop(first);
    yard.gateway.again();
    let second = yard.gateway.builder().journal(reopened(&path).await).build().unwrap();
    second.register_tool(counting("work", &ran)).unwrap();
    assert_eq!(second.serve_tools(&run).await.unwrap().answered, 1);
    assert_eq!(outcome(&yard.finish(&run).await), ("ok".to_owned(), "\"moved\"".to_owned()));
    assert_eq!(ran.load(Ordering::SeqCst), 1, "the second worker only told");
}

#[tokio::test]
async fn a_crash_in_the_middle_is_said_unless_a_repeat_does_no_harm() {
    for idempotent in [false, true] {
        let yard = Yard::new(json!([client_tool("work")])).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let run = yard.say("call work {}").await;
        let first = yard.gateway.builder().journal(Journal::file(&path).unwrap()).build().unwrap();
        let never = |_: Value, _: CallContext| std::future::pending::<Result<Value, Failure>>();
        first.register_tool(tool("work").describe("d").run(never)).unwrap();
        let serving = tokio::spawn(first.serve_tools(&run).into_future());
        eventually("the call begins", || async {
            std::fs::read_to_string(&path).unwrap_or_default().contains("started").then_some(())
        })
        .await;
        serving.abort();
        let _ = serving.await;
        drop(first);
        // The same program comes back: its claim is its own.
        let journal = reopened(&path).await;
        let second = yard.gateway.builder().journal(journal).build().unwrap();
        let built = tool("work").describe("d");
        let built = if idempotent { built.idempotent() } else { built };
        second
            .register_tool(built.run(|_: Value, _: CallContext| async { Ok::<_, Failure>(json!("again")) }))
            .unwrap();
        second.serve_tools(&run).await.unwrap();
        let (kind, said) = outcome(&yard.finish(&run).await);
        if idempotent {
            assert_eq!((kind.as_str(), said.as_str()), ("ok", "\"again\""));
        } else {
            assert_eq!(kind, "failed");
            assert!(said.starts_with("Uncertain: the client stopped"), "{said}");
        }
    }
}

#[tokio::test]
async fn h66_a_tool_tells_how_far_it_is_and_readers_of_the_run_see_it() {
    let yard = Yard::new(json!([client_tool("work")])).await;
    let slow = tool("work").describe("d").run(|_: Value, cx: CallContext| async move {
        cx.progress(0.25, "a quarter").await?;
        cx.progress(1.0, "all").await?;
        assert!(cx.progress(1.5, "too much").await.is_err());
        Ok::<_, Failure>(json!("done"))
    });
    yard.client.register_tool(slow).unwrap();
    let run = yard.say("call work {}").await;
    yard.client.serve_tools(&run).await.unwrap();
    let told: Vec<_> = yard
        .finish(&run)
        .await
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Progressed(progress) => Some((progress.fraction.unwrap(), progress.message.unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(0.25, "a quarter".to_owned()), (1.0, "all".to_owned())]);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_stopped() {
    let yard = Yard::new(json!([client_tool("work")])).await;
    let (begun, mut hears) = tokio::sync::mpsc::channel(1);
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = dropped.clone();
    let endless = tool("work").describe("d").run(move |_: Value, _: CallContext| {
        let (begun, kept) = (begun.clone(), Counts(count.clone()));
        async move {
            let _kept = kept;
            begun.send(()).await.unwrap();
            std::future::pending::<Result<Value, Failure>>().await
        }
    });
    yard.client.register_tool(endless).unwrap();
    let run = yard.say("call work {}").await;
    let serving = tokio::spawn(yard.client.serve_tools(&run).into_future());
    hears.recv().await.unwrap();
    yard.client.runs().cancel(&run, "enough").await.unwrap();
    assert_eq!(serving.await.unwrap().unwrap().answered, 0);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_result_that_the_gateway_refuses_becomes_a_failure_and_the_run_goes_on() {
    let yard = Yard::new(json!([client_tool("work")])).await;
    let huge = |_: Value, _: CallContext| async { Ok::<_, Failure>("x".repeat(11 << 20)) };
    yard.client.register_tool(tool("work").describe("d").run(huge)).unwrap();
    let run = yard.say("call work {}").await;
    yard.client.serve_tools(&run).await.unwrap();
    let (kind, said) = outcome(&yard.finish(&run).await);
    assert!(kind == "failed" && said.starts_with("The result was refused: "), "{kind} {said}");
}

#[tokio::test]
async fn a_journal_belongs_to_one_process_forgets_what_was_posted_and_survives_a_torn_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let call = |text: &str| toolyard_client::CallId::parse(text).unwrap();
    let journal = Journal::file(&path).unwrap();
    assert!(matches!(Journal::file(&path), Err(JournalError::Busy(_))));
    use toolyard_client::Begun;
    assert_eq!(journal.begin(&call("a"), false).await.unwrap(), Begun::Fresh);
    assert_eq!(journal.begin(&call("a"), false).await.unwrap(), Begun::Running);
    journal.end(&call("a"), &Ok(json!(1))).await.unwrap();
    journal.begin(&call("b"), false).await.unwrap();
    journal.end(&call("b"), &Err("no".to_owned())).await.unwrap();
    journal.forget(&call("b")).await.unwrap();
    journal.begin(&call("c"), false).await.unwrap();
    drop(journal);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"state\":\"ended\",\"call\":\"c\",\"outco");
    std::fs::write(&path, text).unwrap();
    let journal = Journal::file(&path).unwrap();
    assert_eq!(journal.begin(&call("a"), false).await.unwrap(), Begun::Ended(Ok(json!(1))));
    assert_eq!(journal.begin(&call("b"), false).await.unwrap(), Begun::Fresh, "posted, so forgotten");
    assert_eq!(journal.begin(&call("c"), false).await.unwrap(), Begun::Unknown);
    drop(journal);
    assert!(Journal::file(&path).is_ok(), "the torn line is gone");
    std::fs::write(&path, "nonsense\n").unwrap();
    assert!(matches!(Journal::file(&path), Err(JournalError::Broken { line: 1, .. })));
}

/// A stopped worker finishes what it has begun.
#[tokio::test]
async fn a_worker_that_stops_finishes_its_calls_first() {
    let yard = Yard::new(json!([client_tool("work")])).await;
    let (begun, mut hears) = tokio::sync::mpsc::channel(1);
    let stopped = Arc::new(tokio::sync::Notify::new());
    let go_on = stopped.clone();
    let slow = tool("work").describe("d").run(move |_: Value, _: CallContext| {
        let (begun, go_on) = (begun.clone(), go_on.clone());
        async move {
            begun.send(()).await.unwrap();
            go_on.notified().await;
            Ok::<_, Failure>(json!("finished"))
        }
    });
    let client: Client = yard.gateway.client();
    client.register_tool(slow).unwrap();
    let (serving, stop) = start(client.serve_tools(&yard.space).concurrency(1));
    let run = yard.say("call work {}").await;
    hears.recv().await.unwrap();
    // The call ends only after the worker was told to stop.
    stop.cancel();
    stopped.notify_one();
    assert_eq!(serving.await.unwrap().unwrap().answered, 1);
    assert_eq!(outcome(&yard.finish(&run).await).1, "\"finished\"");
}
