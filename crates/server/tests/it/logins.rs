//! Users who log in at an MCP server of the operator, each for themselves. The
//! far side is a protected MCP server with an authorization server of its own:
//! metadata, dynamic registration, code and PKCE. Its log says what it heard.

use reqwest::{Method, StatusCode, redirect};
use serde_json::{Value, json};
use toolyard_protocol::sse::SseEvent;

use crate::database::Database;
use crate::fault_http::FaultServer;
use crate::gateway::{Folder, Gateway, ask, fine};
use crate::mcp::named;
use crate::yard::{join, new_space, new_user, read_all};

/// The protected server, and what it heard.
struct Far {
    process: FaultServer,
    client: reqwest::Client,
}

impl Far {
    fn start() -> Self {
        Self::start_as("oauth", 0)
    }
    fn start_as(mode: &str, port: u16) -> Self {
        let client =
            reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none()).build().unwrap();
        Self { process: FaultServer::start(mode, port), client }
    }
    fn url(&self, path: &str) -> String {
        self.process.url(path)
    }
    async fn control(&self, change: Value) {
        fine(self.client.post(self.url("/control")).json(&change)).await;
    }
    async fn log(&self) -> Vec<Value> {
        fine(self.client.get(self.url("/log"))).await.as_array().unwrap().clone()
    }
    /// The tokens that calls came with, in order.
    async fn tokens(&self) -> Vec<String> {
        let calls = self.log().await.into_iter().filter(|line| line[1] == "tools/call");
        calls.map(|line| line[3]["authorization"].as_str().unwrap_or_default().to_owned()).collect()
    }
    /// A browser: agrees, and says where it was sent.
    async fn browse(&self, url: &str) -> String {
        let answer = self.client.get(url).send().await.unwrap();
        assert_eq!(answer.status(), 302, "{url}");
        answer.headers()["location"].to_str().unwrap().to_owned()
    }
}

/// People's browsers know the gateway by this, also after a restart.
const HOME: &str = "http://127.0.0.1:9";

struct Story {
    gateway: Gateway,
    far: Far,
    database: Database,
    spaces: Vec<(&'static str, String)>,
}

async fn start(folder: Folder, far: &Far, database: &Database) -> Gateway {
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, json!({"mcpServers": {"notes": {"url": far.url("/mcp")}}}).to_string()).unwrap();
    let mut env = vec![
        ("TOOLYARD_MCP_SERVERS_FILE", file.to_str().unwrap()),
        ("TOOLYARD_ALLOW_PRIVATE_NETWORK", "127.0.0.1"),
        ("TOOLYARD_PUBLIC_URL", HOME),
    ];
    if let Some(url) = &database.url {
        env.push(("TOOLYARD_DATABASE_URL", url));
    }
    Gateway::start_with(folder, &env).await
}

impl Story {
    /// Ann and Bob, each alone with the agent.
    async fn begin(database: Database) -> Self {
        let far = Far::start();
        let gateway = start(Folder::new(), &far, &database).await;
        let config = json!({
            "agent": {"name": "scribe"}, "model": {"provider": "demo", "name": "demo"},
            "mcp": {"servers": [{"name": "notes"}]},
        });
        gateway.post("/api/agents", json!({ "config": config })).await;
        let made = gateway.post("/api/entities/agent", json!({"agentId": "scribe"})).await;
        let mut spaces = Vec::new();
        for user in ["ann", "bob"] {
            let space = new_space(&gateway).await;
            join(&gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
            join(&gateway, &space, &new_user(&gateway, user).await).await;
            spaces.push((user, space));
        }
        Self { gateway, far, database, spaces }
    }

    /// The gateway dies without a word and comes back.
    async fn killed(self) -> Self {
        let Self { gateway, far, database, spaces } = self;
        let gateway = start(gateway.kill(), &far, &database).await;
        Self { gateway, far, database, spaces }
    }

    async fn say(&self, user: &str, content: &str) -> String {
        let space = &self.spaces.iter().find(|(name, _)| *name == user).unwrap().1;
        let path = format!("/api/smart-spaces/{space}/messages");
        let posted = self.gateway.user(user, Method::POST, &path).json(&json!({ "content": content }));
        fine(posted).await["runs"][0]["runId"].as_str().unwrap().to_owned()
    }

    async fn finish(&self, run: &str) -> Vec<SseEvent> {
        let stream = self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
        read_all(stream.send().await.unwrap()).await
    }

    /// The wait that a user sees of a run, once there is one.
    async fn wait(&self, user: &str, run: &str) -> Value {
        let path = format!("/api/waits?runId={run}");
        for _ in 0..2000 {
            let list = fine(self.gateway.user(user, Method::GET, &path)).await;
            if let Some(wait) = list["waits"].as_array().and_then(|w| w.first()) {
                return wait.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no wait opened: {}", self.gateway.log());
    }

    /// Comes back to the gateway as a browser does.
    async fn come_back(&self, location: &str) -> (StatusCode, String) {
        let path = location.strip_prefix(HOME).unwrap_or_else(|| panic!("{location}"));
        let answer = self.gateway.bare(Method::GET, path).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    async fn log_in(&self, url: &str) {
        let (status, page) = self.come_back(&self.far.browse(url).await).await;
        assert_eq!(status, 200, "{page}");
    }

    async fn echoes(&self, user: &str, word: &str) {
        let run = self.say(user, &format!("call mcp_notes_echo {{\"message\": \"{word}\"}}")).await;
        let events = self.finish(&run).await;
        let output = named(&events, "tool-output-available").unwrap_or_else(|| panic!("{events:?}"));
        assert_eq!(output["output"], word, "{output}");
    }
}

fn asked(wait: &Value) -> &str {
    assert_eq!(wait["kind"], "credential", "{wait}");
    wait["payload"]["loginUrl"].as_str().unwrap_or_else(|| panic!("{wait}"))
}

/// X18, part 2 row 13: the whole way, over two deaths of the gateway.
async fn a_user_logs_in_and_the_call_goes_on(database: Database) {
    let story = Story::begin(database).await;
    // Nobody has logged in: there is one tool, and it asks.
    let run = story.say("ann", "call mcp_notes_login {}").await;
    let wait = story.wait("ann", &run).await;
    let login = asked(&wait).to_owned();
    assert_eq!((&wait["payload"]["server"], story.far.tokens().await.len()), (&json!("notes"), 0), "{wait}");
    // It is Ann's business alone.
    let path = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    let (status, _) = ask(story.gateway.user("bob", Method::POST, &path).json(&json!({"value": {}}))).await;
    assert_eq!(status, 403);

    let story = story.killed().await;
    let back = story.far.browse(&login).await;
    let forged = back.replace("state=", "state=x");
    assert_eq!(story.come_back(&forged).await.0, 400);
    let (status, page) = story.come_back(&back).await;
    assert!(status == 200 && page.contains("ann") && page.contains("notes"), "{page}");
    let events = story.finish(&run).await;
    let output = named(&events, "tool-output-available").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(output["output"]["success"], true, "{output}");
    assert!(output["output"]["tools"].to_string().contains("mcp_notes_echo"), "{output}");
    // A way back leads in once.
    assert_eq!(story.come_back(&back).await.0, 400);
    story.echoes("ann", "hi").await;

    // Her token is nobody else's, and outlives the gateway.
    let run = story.say("bob", "call mcp_notes_echo {\"message\": \"no\"}").await;
    assert!(named(&story.finish(&run).await, "tool-error").is_some());
    let story = story.killed().await;
    story.echoes("ann", "again").await;
    let tokens = story.far.tokens().await;
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    assert!(tokens.iter().all(|token| token.starts_with("Bearer at-")), "{tokens:?}");
    // Nothing of it lies open on the disk, in a log or in an answer.
    let plain = tokens[0].trim_start_matches("Bearer ");
    for entry in std::fs::read_dir(story.gateway.folder.path().join("data")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(plain.len()).any(|w| w == plain.as_bytes()));
    }
    assert!(!story.gateway.log().contains(plain));

    // A token that is taken away asks again, in the middle of a call.
    story.far.control(json!({"revoke": true, "refresh": {}})).await;
    let run = story.say("ann", "call mcp_notes_echo {\"message\": \"third\"}").await;
    let wait = story.wait("ann", &run).await;
    assert!(asked(&wait).contains("/authorize?"));
    let path = wait["payload"]["loginPath"].as_str().unwrap();
    let begun = fine(story.gateway.user("ann", Method::POST, path).json(&json!({}))).await;
    story.log_in(begun["loginUrl"].as_str().unwrap()).await;
    let events = story.finish(&run).await;
    assert_eq!(named(&events, "tool-output-available").unwrap()["output"], "third", "{events:?}");

    // Logged out, she is asked again; Bob never was in.
    let state =
        async |user: &str| fine(story.gateway.user(user, Method::GET, path)).await["loggedIn"].clone();
    assert_eq!((state("ann").await, state("bob").await), (json!(true), json!(false)));
    let gone = story.gateway.user("ann", Method::DELETE, path).send().await.unwrap();
    assert_eq!((gone.status().as_u16(), state("ann").await), (204, json!(false)));
    let run = story.say("ann", "call mcp_notes_echo {\"message\": \"out\"}").await;
    let wait = story.wait("ann", &run).await;
    let answer = format!("/api/waits/{}/answer", wait["id"].as_str().unwrap());
    fine(story.gateway.user("ann", Method::POST, &answer).json(&json!({"decision": "deny"}))).await;
    assert!(named(&story.finish(&run).await, "tool-error").is_some());
    // The gateway was registered once for each time that Ann was not known.
    let log = story.far.log().await;
    let count = |what: &str| log.iter().filter(|line| line[0] == what).count();
    assert_eq!((count("register"), count("authorize")), (2, 2));
}

#[tokio::test]
async fn x18_a_user_logs_in_and_the_call_goes_on_sqlite() {
    a_user_logs_in_and_the_call_goes_on(Database::sqlite()).await;
}

#[tokio::test]
async fn x18_a_user_logs_in_and_the_call_goes_on_postgres() {
    a_user_logs_in_and_the_call_goes_on(Database::postgres()).await;
}

/// X18: who may begin what. A user only for themselves, nobody at a server that
/// is not there, a backend for whom it names.
#[tokio::test]
async fn x18_a_login_is_begun_for_oneself() {
    let story = Story::begin(Database::sqlite()).await;
    let path = "/api/mcp/servers/notes/login";
    let bob = story.gateway.get("/api/entities?type=human").await;
    let bob = bob["entities"].as_array().unwrap().iter().find(|e| e["externalId"] == "bob").unwrap();
    let foreign = json!({"entityId": bob["id"]});
    assert_eq!(ask(story.gateway.user("ann", Method::POST, path).json(&foreign)).await.0, 403);
    assert_eq!(ask(story.gateway.secret(Method::POST, path).json(&json!({}))).await.0, 400);
    let nowhere = "/api/mcp/servers/nowhere/login";
    assert_eq!(ask(story.gateway.user("ann", Method::POST, nowhere).json(&json!({}))).await.0, 404);
    let by_agent = json!({"agentId": "scribe"});
    let (status, _) = ask(story.gateway.user("ann", Method::POST, nowhere).json(&by_agent)).await;
    assert_eq!(status, 404);
    // A backend begins it; what comes of it is Bob's.
    let begun = fine(story.gateway.secret(Method::POST, path).json(&foreign)).await;
    story.log_in(begun["loginUrl"].as_str().unwrap()).await;
    story.echoes("bob", "mine").await;
    let ann = fine(story.gateway.user("ann", Method::GET, path)).await;
    assert_eq!(ann["loggedIn"], false);
    // A refusal of the user ends the login.
    let begun = fine(story.gateway.user("ann", Method::POST, path).json(&json!({}))).await;
    let url = reqwest::Url::parse(begun["loginUrl"].as_str().unwrap()).unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let refused =
        format!("{HOME}/api/mcp/callback?error=access_denied&error_description=%3Cb%3E&state={state}");
    let (status, page) = story.come_back(&refused).await;
    assert!(status == 400 && !page.contains("<b>"), "{page}");
    assert_eq!(story.come_back(&story.far.browse(url.as_str()).await).await.0, 400);
}

/// C10: a server of the newer era keeps no state between calls: each call is a
/// request of its own without a session, and one that was started anew in
/// between is called as before.
#[tokio::test]
async fn c10_a_stateless_server_is_called_without_a_session() {
    let far = Far::start_as("modern", 0);
    let port = far.process.port;
    let gateway = start(Folder::new(), &far, &Database::sqlite()).await;
    let config = json!({"agent": {"name": "scribe"}, "model": {"provider": "demo", "name": "demo"},
        "mcp": {"servers": [{"name": "notes"}]}});
    gateway.post("/api/agents", json!({ "config": config })).await;
    let made = gateway.post("/api/entities/agent", json!({"agentId": "scribe"})).await;
    let space = new_space(&gateway).await;
    join(&gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
    join(&gateway, &space, &new_user(&gateway, "ann").await).await;
    let mut story = Story { gateway, far, database: Database::sqlite(), spaces: vec![("ann", space)] };
    story.echoes("ann", "one").await;
    let calls: Vec<Value> =
        story.far.log().await.into_iter().filter(|line| line[1] == "tools/call").collect();
    assert!(calls.len() == 1 && calls[0][3].get("mcp-session-id").is_none(), "{calls:?}");
    drop(std::mem::replace(&mut story.far, Far::start_as("modern", 0)));
    story.far = Far::start_as("modern", port);
    story.echoes("ann", "two").await;
    assert_eq!(story.far.log().await.iter().filter(|line| line[1] == "tools/call").count(), 1);
}
