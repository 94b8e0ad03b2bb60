//! What is kept, and how it goes: old runs, large results, all of an entity,
//! all of a tenant.

use reqwest::Method;
use serde_json::{Value, json};
use toolyard_store::{Settings, Store, StoreError};

use crate::gateway::{Folder, Gateway, ask, fine, toolyard};
use crate::yard::{Stream, Yard, agent, data, eventually, join, new_space};

/// About a second.
const SHORT: (&str, &str) = ("TOOLYARD_RETENTION_FINISHED_RUNS_DAYS", "0.00001");

async fn messages(yard: &Yard, space: &str) -> Vec<Value> {
    let list = yard.gateway.get(&format!("/api/smart-spaces/{space}/messages")).await;
    list["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn an_old_run_is_removed_and_the_conversation_stays() {
    let yard = Yard::on(Gateway::start_with(Folder::new(), &[SHORT]).await).await;
    let elsewhere = new_space(&yard.gateway).await;
    join(&yard.gateway, &elsewhere, &yard.agent_entity).await;
    join(&yard.gateway, &elsewhere, &yard.ann).await;
    let path = format!("/api/smart-spaces/{elsewhere}/messages");
    let call = json!({"content": "call getUserApproval {}"});
    let posted = fine(yard.gateway.user("ann", Method::POST, &path).json(&call)).await;
    let waiting = posted["runs"][0]["runId"].as_str().unwrap().to_owned();

    let run = yard.say("say the answer").await;
    let path = format!("/api/runs/{run}");
    eventually("the removal of the run", async || {
        let said = messages(&yard, &yard.space).await;
        let gone = ask(yard.gateway.secret(Method::GET, &path)).await.0 == 404;
        gone && said.len() == 2
    })
    .await;
    let said = messages(&yard, &yard.space).await;
    assert_eq!(said[1]["content"], "the answer");
    assert_eq!(said[1].get("runId"), None, "nobody finds the run any more");
    yard.gateway.get(&format!("/api/runs/{waiting}")).await;

    // A reader who stood inside of what is gone starts over; a new one hears all that is left.
    let stream = format!("/api/smart-spaces/{}/stream", yard.space);
    let follow = async |from: &str| {
        let request = yard.gateway.user("ann", Method::GET, &stream).header("last-event-id", from);
        Stream::new(request.send().await.unwrap())
    };
    let reset = follow("1").await.next().await.unwrap();
    assert_eq!(reset.event.as_deref(), Some("reset"));
    let snapshot = data(&reset);
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 2);
    assert_eq!(snapshot["runs"], json!([]));
    let mut anew = follow("0").await;
    for words in ["say the answer", "the answer"] {
        let told = anew.next().await.unwrap();
        assert_eq!(data(&told)["message"]["content"], words, "{told:?}");
    }
    let last = reset.id.unwrap();
    let mut current = follow(&last).await;
    yard.say("say more").await;
    let next = current.next().await.unwrap();
    assert_ne!(next.event.as_deref(), Some("reset"), "who is up to date goes on");

    let audit = yard.gateway.get("/api/audit").await;
    let line = audit["entries"].as_array().unwrap().iter().find(|e| e["target"] == run.as_str()).unwrap();
    assert_eq!((&line["actor"], &line["action"]), (&json!("retention"), &json!("run.delete")));
    let numbers = yard.gateway.bare(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(numbers.contains("toolyard_runs_removed_total"), "{numbers}");
    // A part of a day is fine, nothing is not.
    let output = toolyard(yard.gateway.folder.path())
        .args(["config", "check"])
        .env("TOOLYARD_RETENTION_FINISHED_RUNS_DAYS", "0")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("retention.finished_runs_days"), "{told}");
}

/// The call of a run that has ended.
async fn ended_call(yard: &Yard, run: &str) -> String {
    yard.finish(run).await;
    let log = yard.gateway.get(&format!("/api/runs/{run}/events")).await;
    let events = log["events"].as_array().unwrap();
    let done = events.iter().find(|e| e["type"] == "tool-output-available").unwrap();
    done["toolCallId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_large_result_is_read_whole_by_those_who_may_see_it() {
    let yard = Yard::new().await;
    let value = json!({"text": format!("{}the end", "ö".repeat(70_000))});
    let whole = json!({"success": true, "text": value["text"]});
    let big = |name: &str, visibility: &str| json!({"name": name, "visibility": visibility, "execution": {"mode": "static", "output": value}});
    let mut config = agent("assistant");
    config["tools"] = json!([big("open", "public"), big("hidden", "private")]);
    yard.gateway.post("/api/agents", json!({"config": config})).await;

    let run = yard.say("call open {}").await;
    let call = ended_call(&yard, &run).await;
    let path = format!("/api/runs/{run}/results/{call}");
    assert_eq!(yard.gateway.get(&path).await, whole);
    assert_eq!(fine(yard.gateway.user("ann", Method::GET, &path)).await, whole);
    let (mut text, mut offset) = (String::new(), Some(0));
    while let Some(at) = offset {
        let piece = yard.gateway.get(&format!("{path}?offset={at}&limit=50000")).await;
        assert_eq!(piece["characters"], whole.to_string().chars().count());
        text.push_str(piece["text"].as_str().unwrap());
        offset = piece["nextOffset"].as_u64();
    }
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), whole);
    assert_eq!(ask(yard.gateway.user("eve", Method::GET, &path)).await.0, 403);
    let unknown = format!("/api/runs/{run}/results/call_x");
    assert_eq!(ask(yard.gateway.secret(Method::GET, &unknown)).await.0, 404);

    let run = yard.say("call hidden {}").await;
    let call = ended_call(&yard, &run).await;
    let path = format!("/api/runs/{run}/results/{call}");
    assert_eq!(yard.gateway.get(&path).await, whole);
    let (status, body) = ask(yard.gateway.user("ann", Method::GET, &path)).await;
    assert_eq!(status, 403, "{body}");
    assert!(!body.to_string().contains("ö"), "{body}");
}

#[tokio::test]
async fn an_entity_is_exported_and_then_gone() {
    let yard = Yard::new().await;
    let run = yard.say("say the answer to ann").await;
    yard.finish(&run).await;
    yard.gateway.post("/api/goals", json!({"entityId": yard.ann, "description": "learn to swim"})).await;
    let path = format!("/api/entities/{}/export", yard.ann);
    let answer = yard.gateway.secret(Method::GET, &path).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    let text = answer.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!(*last, json!({"end": true, "rows": lines.len() - 1}));
    for table in ["entities", "members", "messages", "runs", "events", "goals"] {
        assert!(lines.iter().any(|line| line["table"] == table), "{table}: {text}");
    }
    assert!(text.contains("learn to swim") && text.contains("the answer to ann"));
    assert_eq!(ask(yard.gateway.user("ann", Method::GET, &path)).await.0, 401);

    let entity = format!("/api/entities/{}", yard.ann);
    assert_eq!(ask(yard.gateway.secret(Method::DELETE, &entity)).await.0, 204);
    for path in [&entity, &path, &format!("/api/runs/{run}")] {
        assert_eq!(ask(yard.gateway.secret(Method::GET, path)).await.0, 404, "{path}");
    }
    assert_eq!(ask(yard.gateway.secret(Method::DELETE, &entity)).await.0, 404);
    let said = messages(&yard, &yard.space).await;
    assert_eq!(said.len(), 1, "what the agent said stays, what she said goes: {said:?}");
    let audit = yard.gateway.get("/api/audit").await;
    let of_her = |e: &&Value| e["target"] == yard.ann.as_str();
    let actions: Vec<&Value> =
        audit["entries"].as_array().unwrap().iter().filter(of_her).map(|e| &e["action"]).collect();
    assert_eq!(actions[..2], ["entity.delete", "entity.export"]);
}

#[tokio::test]
async fn a_tenant_goes_with_all_of_it() {
    let gateway = Gateway::start().await;
    let tenant = async |gateway: &Gateway| {
        let made = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
        let key = made["key"].as_str().unwrap().to_owned();
        let config = json!({"config": agent("theirs")});
        fine(gateway.bare(Method::POST, "/api/agents").header("x-secret-key", &key).json(&config)).await;
        key
    };
    let key = tenant(&gateway).await;
    let run = |folder: &Folder, args: &[&str]| {
        let output = toolyard(folder.path()).args(args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), told)
    };
    // A tenant does not remove itself, nor does anybody remove the operator's.
    let remove = |key: &str, name: &str| {
        gateway.bare(Method::DELETE, &format!("/api/tenants/{name}")).header("x-secret-key", key)
    };
    assert_eq!(ask(remove(&key, "acme")).await.0, 404);
    assert_eq!(ask(remove(crate::gateway::SECRET, "default")).await.0, 400);
    assert!(!run(&gateway.folder, &["tenant", "delete", "default", "--yes"]).0);
    let (done, told) = run(&gateway.folder, &["tenant", "delete", "acme"]);
    assert!(!done && told.contains("--yes"), "{told}");
    let (done, told) = run(&gateway.folder, &["tenant", "delete", "acme", "--yes"]);
    assert!(done, "{told}");
    eventually("the end of its key", async || {
        let asked = gateway.bare(Method::GET, "/api/agents").header("x-secret-key", &key);
        ask(asked).await.0 == 401
    })
    .await;
    let keys = gateway.get("/api/keys?tenant=acme").await;
    assert_eq!(keys["keys"], json!([]));
    let audit = gateway.get("/api/audit").await;
    assert_eq!(
        (&audit["entries"][0]["action"], &audit["entries"][0]["target"]),
        (&json!("tenant.delete"), &json!("acme"))
    );

    // And without a gateway.
    tenant(&gateway).await;
    let (_, _, folder) = gateway.terminate();
    assert!(run(&folder, &["tenant", "delete", "acme", "--yes"]).0);
    let (done, told) = run(&folder, &["tenant", "delete", "acme", "--yes"]);
    assert!(!done && told.contains("Tenant not found"), "{told}");
}

/// What is new would go along with what is old.
#[tokio::test]
async fn a_tenant_that_goes_is_not_made_anew_before_it_is_gone() {
    let folder = Folder::new();
    let create = |folder: &Folder| {
        let args = ["key", "create", "--kind", "secret", "--tenant", "acme"];
        let output = toolyard(folder.path()).args(args).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(create(&folder).0);
    // As a death in the middle leaves it.
    let store = Store::open(&Settings::Sqlite { folder: folder.path().join("data") }).await.unwrap();
    let note =
        "INSERT INTO removals (tenant, kind, target, actor) VALUES ('default', 'tenant', 'acme', 'cli')";
    let noted = store.write::<_, StoreError, _>(move |tx| Box::pin(async move { tx.exec(note, &[]).await }));
    noted.await.unwrap();
    store.close().await;
    let (made, told) = create(&folder);
    assert!(!made && told.contains("The tenant is being removed"), "{told}");

    let gateway = Gateway::start_with(folder, &[]).await;
    let list = async || gateway.get("/api/keys?tenant=acme").await["keys"].as_array().unwrap().len();
    eventually("the end of the tenant", async || list().await == 0 && create(&gateway.folder).0).await;
    assert_eq!(list().await, 1, "the new one stays");
    let audit = gateway.get("/api/audit").await;
    let told = |e: &&Value| e["action"] == "tenant.delete" && e["actor"] == "cli";
    assert_eq!(audit["entries"].as_array().unwrap().iter().filter(told).count(), 1);
}

#[tokio::test]
async fn a_user_finds_its_waits_behind_those_of_others_page_by_page() {
    let yard = Yard::new().await;
    for n in 0..3 {
        let space = new_space(&yard.gateway).await;
        join(&yard.gateway, &space, &yard.agent_entity).await;
        let who = if n == 1 { &yard.bob } else { &yard.ann };
        join(&yard.gateway, &space, who).await;
        let user = if n == 1 { "bob" } else { "ann" };
        let path = format!("/api/smart-spaces/{space}/messages");
        let call = json!({"content": "call getUserApproval {}"});
        let posted = fine(yard.gateway.user(user, Method::POST, &path).json(&call)).await;
        yard.wait_of(posted["runs"][0]["runId"].as_str().unwrap()).await;
    }
    let pages = async |user: Option<&str>| {
        let (mut sizes, mut ids, mut after) = (Vec::new(), Vec::new(), String::new());
        loop {
            let path = format!("/api/waits?limit=1{after}");
            let request = match user {
                Some(user) => yard.gateway.user(user, Method::GET, &path),
                None => yard.gateway.secret(Method::GET, &path),
            };
            let page = fine(request).await;
            let waits = page["waits"].as_array().unwrap();
            sizes.push(waits.len());
            ids.extend(waits.iter().map(|wait| wait["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        (sizes, ids)
    };
    let (sizes, all) = pages(None).await;
    assert_eq!((sizes, all.len()), (vec![1, 1, 1], 3));
    let (sizes, hers) = pages(Some("ann")).await;
    assert_eq!((sizes, &hers), (vec![1, 1], &vec![all[0].clone(), all[2].clone()]));
    let (_, his) = pages(Some("bob")).await;
    assert_eq!(his, [all[1].clone()]);
    let garbage = yard.gateway.secret(Method::GET, "/api/waits?after=yesterday");
    assert_eq!(ask(garbage).await.0, 400);
}
