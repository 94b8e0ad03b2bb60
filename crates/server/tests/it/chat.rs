//! `toolyard chat` over pipes, as a program would use it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, PATIENCE, signal, toolyard};
use crate::yard::agent;

async fn start() -> Gateway {
    let gateway = Gateway::start().await;
    let mut config = agent("assistant");
    let tools = config["tools"].as_array_mut().unwrap();
    tools.push(
        json!({"name": "requestInput", "executionType": "prebuilt", "execution": {"action": "requestInput"}}),
    );
    gateway.post("/api/agents", json!({ "config": config })).await;
    gateway
}

/// Runs a chat with these lines on its standard input.
async fn chat(gateway: &Gateway, args: &[&str], lines: &str) -> Output {
    let mut command = toolyard(gateway.folder.path());
    command.arg("chat").args(args).env("USER", "ann");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap()
}

fn out(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn err(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[tokio::test]
async fn one_question_gets_one_answer_and_nothing_else_on_the_output() {
    let gateway = start().await;
    let done = chat(&gateway, &["say hello there"], "").await;
    assert!(done.status.success(), "{}", err(&done));
    assert_eq!(out(&done), "hello there\n");
    let thought = chat(&gateway, &["think deeply\nsay ok"], "").await;
    assert_eq!(out(&thought), "ok\n");
    assert!(err(&thought).contains("(thinks) deeply"), "{}", err(&thought));
    let failed = chat(&gateway, &["fail"], "").await;
    assert_eq!(failed.status.code(), Some(1));
    assert!(err(&failed).contains("the run failed: model_request_refused"), "{}", err(&failed));
    let nobody = chat(&gateway, &["--agent", "nobody", "hi"], "").await;
    assert_eq!(err(&nobody), "toolyard: there is no agent \"nobody\"; there are: assistant\n");
}

#[tokio::test]
async fn lines_are_messages_and_a_space_is_continued() {
    let gateway = start().await;
    let done = chat(&gateway, &[], "say one\n\nsay two\n/exit\nsay three\n").await;
    assert_eq!(out(&done), "one\ntwo\n", "{}", err(&done));
    let told = err(&done);
    let space = told.split("--space ").nth(1).unwrap().split(')').next().unwrap();
    let again = chat(&gateway, &["--space", space, "say again"], "").await;
    assert_eq!(out(&again), "again\n", "{}", err(&again));
    let messages = gateway.get(&format!("/api/smart-spaces/{space}/messages")).await;
    assert_eq!(messages["messages"].as_array().unwrap().len(), 6);
    // The same person and the same agent came back.
    let members = gateway.get(&format!("/api/smart-spaces/{space}/members")).await;
    assert_eq!(members["members"].as_array().unwrap().len(), 2, "{members}");
    let elsewhere = chat(&gateway, &["--url", &gateway.url, "say by address"], "").await;
    assert_eq!(out(&elsewhere), "by address\n");
}

#[tokio::test]
async fn approvals_are_asked_with_the_exact_arguments_and_answered_by_a_letter() {
    let gateway = start().await;
    let guarded = "call guarded {\"q\": \"exactly this\"}";
    for (answer, outcome) in [
        ("d", "denied Tool execution denied by user"),
        ("d not that", "denied not that"),
        ("huh\nd", "denied"),
        ("{\"decision\":\"deny\"}", "denied"),
    ] {
        let done = chat(&gateway, &[guarded], &format!("{answer}\n")).await;
        let told = err(&done);
        assert!(told.contains("? guarded wants to run (client, risk: low) with exactly:"), "{told}");
        assert!(told.contains("\"q\": \"exactly this\""), "{told}");
        assert!(told.contains("[o]nce, [s]ession, [a]lways, [e]dit, [d]eny?"), "{told}");
        assert!(told.contains(&format!("← guarded {outcome}")), "{answer}: {told}");
        assert!(done.status.success());
    }
    // Nobody is there: the run waits, and the code says so.
    let left = chat(&gateway, &[guarded], "").await;
    assert_eq!(left.status.code(), Some(3), "{}", err(&left));
    assert_eq!(gateway.get("/api/approvals").await["waits"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn tools_of_this_terminal_run_here_also_after_an_edited_approval() {
    let gateway = start().await;
    let folder = Folder::new();
    std::fs::write(folder.path().join("list.txt"), "milk and eggs").unwrap();
    let plugin = format!("filesystem:{}", folder.path().display());
    let done = chat(
        &gateway,
        &["--plugin", &plugin, "--plugin", "time", "call read_file {\"path\": \"list.txt\"}"],
        "",
    )
    .await;
    assert!(out(&done).contains("milk and eggs"), "{}", err(&done));
    let told = err(&done);
    assert!(told.contains("→ read_file (client) {\"path\":\"list.txt\"}"), "{told}");
    assert!(told.contains("← read_file ok milk and eggs"), "{told}");
    let outside =
        chat(&gateway, &["--plugin", &plugin, "call read_file {\"path\": \"../secret\"}"], "").await;
    assert!(err(&outside).contains("lies outside of the folder"), "{}", err(&outside));
    for wrong in ["filesystem", "filesystem:/no/such/folder", "nonsense:x"] {
        let refused = chat(&gateway, &["--plugin", wrong, "hi"], "").await;
        assert!(!refused.status.success() && err(&refused).starts_with("toolyard: "), "{wrong}");
    }
    // Edited arguments are what the model's call becomes.
    let ask = json!({"config": {"agent": {"name": "asking"}, "model": {"provider": "demo", "name": "demo"},
        "permissions": {"rules": [{"decision": "ask", "tool": "read_file"}]}}});
    gateway.post("/api/agents", ask).await;
    let args = ["--agent", "asking", "--plugin", &plugin, "call read_file {\"path\": \"other.txt\"}"];
    let edited = chat(&gateway, &args, "e\n{\"path\": \n{\"path\": \"list.txt\"}\n").await;
    assert!(out(&edited).contains("milk and eggs"), "{}", err(&edited));
    assert!(err(&edited).contains("that is no JSON"), "{}", err(&edited));
}

#[tokio::test]
async fn questions_for_a_value_are_asked_field_by_field() {
    let gateway = start().await;
    let plain = chat(&gateway, &["call requestInput {\"message\": \"Which colour?\"}"], "blue\n").await;
    assert!(err(&plain).contains("? Which colour?"), "{}", err(&plain));
    assert!(out(&plain).contains("\"answer\":\"blue\""), "{}", out(&plain));
    let form = json!({"message": "How big?", "schema": {"type": "object", "required": ["size"],
        "properties": {"size": {"type": "integer"}, "gift": {"type": "boolean"}}}});
    let filled = chat(&gateway, &[&format!("call requestInput {form}")], "yes\nbig\n7\n").await;
    assert!(out(&filled).contains("{\"gift\":true,\"size\":7}"), "{} {}", out(&filled), err(&filled));
    assert!(err(&filled).contains("that is no number"));
}

#[tokio::test]
async fn for_programs_every_event_is_a_line_of_json() {
    let gateway = start().await;
    let done = chat(&gateway, &["--json", "call guarded {\"q\": \"x\"}"], "{\"decision\":\"deny\"}\n").await;
    let lines: Vec<Value> = out(&done).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"chat"));
    for kind in ["run.created", "tool-approval-request", "wait.answered", "tool-error", "run.completed"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let asked = lines.iter().find(|line| line["type"] == "tool-approval-request").unwrap();
    assert_eq!(asked["payload"]["args"], json!({"q": "x"}));
}

/// A chat that runs, with its standard error line by line.
struct Live {
    child: Child,
    _stdin: ChildStdin,
    err: std::sync::mpsc::Receiver<String>,
}

fn live(gateway: &Gateway, args: &[&str]) -> Live {
    let mut command = toolyard(gateway.folder.path());
    command.arg("chat").args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (send, err) = std::sync::mpsc::sync_channel(100);
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    Live { _stdin: child.stdin.take().unwrap(), child, err }
}

impl Live {
    fn until(&self, text: &str) {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if self.err.recv_timeout(Duration::from_millis(100)).is_ok_and(|line| line.contains(text)) {
                return;
            }
        }
        panic!("{text} was not said");
    }
}

#[tokio::test]
async fn ctrl_c_cancels_the_run_and_a_second_one_leaves() {
    let gateway = start().await;
    // The run waits for a program that never comes.
    let mut chat = live(&gateway, &["call getUserApproval {}"]);
    chat.until("waiting for another program to run getUserApproval");
    signal(chat.child.id(), "INT");
    chat.until("canceling; Ctrl-C again leaves");
    chat.until("canceled");
    assert_eq!(chat.child.wait().unwrap().code(), Some(1));
    let runs = gateway.get("/api/runs").await;
    assert_eq!(runs["runs"][0]["status"], "canceled");
    // A gateway that does not answer any more cannot keep the person.
    let mut chat = live(&gateway, &["call getUserApproval {}"]);
    chat.until("waiting for another program");
    signal(gateway.pid(), "STOP");
    signal(chat.child.id(), "INT");
    chat.until("canceling; Ctrl-C again leaves");
    signal(chat.child.id(), "INT");
    let left = chat.child.wait().unwrap();
    signal(gateway.pid(), "CONT");
    assert_eq!(left.code(), Some(130));
}

#[test]
fn without_a_gateway_the_advice_is_to_start_one() {
    let folder = Folder::new();
    let done = toolyard(folder.path()).args(["chat", "hi"]).output().unwrap();
    assert_eq!(
        err(&done),
        "toolyard: no gateway runs here: start one with `toolyard serve`, or name one with --url\n"
    );
}
