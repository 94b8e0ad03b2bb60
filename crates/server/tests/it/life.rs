//! Starting and stopping (row D17), and every reason not to start.

use std::process::Output;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::gateway::{Folder, Gateway, fine, toolyard};
use crate::yard::{Stream, Yard, agent, eventually};

/// Starts a gateway that must not start.
fn refused(folder: &Folder, env: &[(&str, &str)]) -> String {
    let mut command = toolyard(folder.path());
    command.args(["serve"]).env("TOOLYARD_LISTEN", "127.0.0.1:0").envs(env.iter().copied());
    let Output { status, stderr, .. } = command.output().unwrap();
    assert!(!status.success());
    let text = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "one sentence: {text}");
    text
}

#[tokio::test]
async fn a_gateway_that_cannot_start_says_why_in_one_sentence() {
    let running = Gateway::start().await;
    let busy = refused(&Folder::new(), &[("TOOLYARD_LISTEN", &running.address())]);
    assert!(busy.contains("cannot listen on 127.0.0.1"), "{busy}");
    let data = running.folder.path().join("data").display().to_string();
    let locked = refused(&Folder::new(), &[("TOOLYARD_DATA", &data)]);
    assert!(locked.contains("is in use by another gateway"), "{locked}");

    let folder = Folder::new();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let file = folder.path().join("file").display().to_string();
    let no_folder = refused(&folder, &[("TOOLYARD_DATA", &file)]);
    assert!(no_folder.contains("the data folder") && no_folder.contains("cannot be used"), "{no_folder}");
    let inside_file = format!("{file}/data");
    assert!(refused(&folder, &[("TOOLYARD_DATA", &inside_file)]).contains("cannot be used"));

    let down = refused(&Folder::new(), &[("TOOLYARD_DATABASE_URL", "postgres://u:canary@127.0.0.1:1/x")]);
    assert!(down.contains("database") && !down.contains("canary"), "{down}");
    let alone = refused(&Folder::new(), &[("TOOLYARD_REDIS_URL", "redis://:canary@127.0.0.1:1")]);
    assert!(alone.contains("redis_url: needs database_url") && !alone.contains("canary"), "{alone}");
    let scheme = refused(&Folder::new(), &[("TOOLYARD_REDIS_URL", "http://:canary@127.0.0.1:1")]);
    assert!(scheme.contains("redis_url: must start with redis://") && !scheme.contains("canary"), "{scheme}");
    let level = refused(&Folder::new(), &[("TOOLYARD_LOG_LEVEL", "toolyard=loud=very")]);
    assert!(level.contains("log.level"), "{level}");
    let jwks = refused(&Folder::new(), &[("TOOLYARD_JWT_JWKS_URL", "http://issuer.example/keys")]);
    assert!(jwks.contains("jwt.jwks_url"), "{jwks}");
}

#[tokio::test]
async fn a_broken_configuration_is_named_by_its_key() {
    for (text, wanted) in [
        ("listn = \"127.0.0.1:0\"", "listn"),
        ("[limits]\nbody_byte = 1", "limits"),
        ("listen = 5", "listen"),
        ("mode = \"staging\"", "mode"),
        ("allowed_origins = [\"localhost\"]", "allowed_origins"),
        ("[providers.x]\nkind = \"demo\"\nurl = \"y\"", "providers.x"),
        ("[providers.x]\nkind = \"openai\"\napi_key_env = \"NO_SUCH_VARIABLE\"", "NO_SUCH_VARIABLE"),
        ("not toml", "toolyard.toml is not TOML"),
    ] {
        let folder = Folder::new();
        std::fs::write(folder.path().join("toolyard.toml"), text).unwrap();
        let mut command = toolyard(folder.path());
        let Output { status, stderr, .. } = command.arg("serve").output().unwrap();
        assert!(!status.success(), "{text}");
        let said = String::from_utf8_lossy(&stderr).into_owned();
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

#[tokio::test]
async fn d17_a_stop_signal_ends_streams_and_the_process_within_ten_seconds() {
    let yard = Yard::new().await;
    let waiting = yard.say("call getUserApproval {\"q\":\"x\"}").await;
    let call = yard.wait_of(&waiting).await["toolCallId"].clone();
    let mut streams = Vec::new();
    for _ in 0..50 {
        let request = yard.gateway.secret(Method::GET, &format!("/api/runs/{waiting}/stream"));
        let mut stream = Stream::new(request.send().await.unwrap());
        stream.until("run.waiting_tool").await;
        streams.push(stream);
    }
    let Yard { gateway, space, agent_entity, ann, bob } = yard;
    let (status, took, folder) = gateway.terminate();
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    for mut stream in streams {
        assert_eq!(stream.next().await, None);
    }
    assert!(!folder.path().join("data/gateway.json").exists());
    // Nothing is lost: the call still waits.
    let yard = Yard { gateway: Gateway::start_with(folder, &[]).await, space, agent_entity, ann, bob };
    assert_eq!(yard.submit(None, &waiting, json!({"callId": call, "result": 1})).await.0, 200);
    yard.finish(&waiting).await;
}

#[tokio::test]
async fn agents_of_the_folder_are_loaded_and_watched() {
    let folder = Folder::new();
    let agents = folder.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    std::fs::write(agents.join("one.json"), agent("one").to_string()).unwrap();
    std::fs::write(agents.join("bad.json"), "{").unwrap();
    let gateway = Gateway::start_with(folder, &[]).await;
    let list = gateway.get("/api/agents").await;
    assert_eq!(list["agents"].as_array().unwrap().len(), 1);
    assert!(gateway.log().contains("bad.json"));
    std::fs::write(agents.join("two.json"), agent("two").to_string()).unwrap();
    eventually("the new agent", async || {
        gateway.secret(Method::GET, "/api/agents/two").send().await.unwrap().status() == 200
    })
    .await;
    let mut changed = agent("one");
    changed["agent"]["system"] = json!("a longer system prompt than before");
    std::fs::write(agents.join("one.json"), changed.to_string()).unwrap();
    eventually("the change", async || {
        let shown = fine(gateway.secret(Method::GET, "/api/agents/one")).await;
        shown["agent"]["config"]["agent"]["system"] == "a longer system prompt than before"
    })
    .await;
}
