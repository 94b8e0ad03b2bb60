//! An agent, a person and spaces: what comes before each story.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::database::Database;
use crate::gateway::Gateway;
use crate::story::Story;

/// More than any walk along all places tells.
const STORIES: usize = 250;

/// The recorder's file, in the folder that the gateway runs in.
pub(crate) const RECORDED: &str = "recorded.txt";

/// An agent, a person and a space: what comes before each story.
pub(crate) struct World {
    pub(crate) database: Database,
    pub(crate) spaces: Vec<String>,
    used: AtomicUsize,
    pub(crate) ada: String,
    pub(crate) bot: String,
}

impl World {
    pub(crate) async fn new(database: Database) -> Self {
        Self::for_stories(database, STORIES).await
    }

    /// Room for so many stories: on PostgreSQL they share one database.
    pub(crate) async fn for_stories(database: Database, count: usize) -> Self {
        let count = if database.url.is_some() { count } else { 2 };
        Self::with_spaces(database, count).await
    }

    pub(crate) async fn with_spaces(database: Database, count: usize) -> Self {
        Self::made(database, count, Story::Text).await
    }

    /// With the agent of a story, and room for its walk.
    pub(crate) async fn for_story(database: Database, story: Story) -> Self {
        let count = if database.url.is_some() { story.room() } else { 2 };
        Self::made(database, count, story).await
    }

    async fn made(database: Database, count: usize, story: Story) -> Self {
        story.furnish(database.folder.path());
        let mut gateway = Gateway::start_with(&database, story.settings());
        if let Some(plugin) = story.plugin() {
            gateway.post("/api/plugins/install", plugin).await;
        }
        let (spaces, ada, bot) = set_up(&mut gateway, count, story.agent()).await;
        gateway.stop();
        Self { database, spaces, used: AtomicUsize::new(0), ada, bot }
    }

    /// A space that no other story on the same database has used.
    pub(crate) fn next_space(&self) -> &str {
        let i = self.used.fetch_add(1, Ordering::Relaxed);
        if self.database.url.is_some() { &self.spaces[i] } else { &self.spaces[0] }
    }

    /// The space where somebody else keeps the gateway busy.
    pub(crate) fn other_space(&self) -> &str {
        self.spaces.last().unwrap()
    }
}

async fn set_up(gateway: &mut Gateway<'_>, spaces: usize, config: Value) -> (Vec<String>, String, String) {
    gateway.post("/api/agents", json!({"config": config})).await;
    let id = |value: Value, name: &str| value[name]["id"].as_str().unwrap().to_owned();
    let ada = id(gateway.post("/api/entities", json!({"type": "human"})).await, "entity");
    let bot = id(gateway.post("/api/entities/agent", json!({"agentId": "bot"})).await, "entity");
    let mut made = Vec::new();
    for _ in 0..spaces {
        let space = id(gateway.post("/api/smart-spaces", json!({})).await, "smartSpace");
        for entity in [&ada, &bot] {
            gateway.post(&format!("/api/smart-spaces/{space}/members"), json!({"entityId": entity})).await;
        }
        made.push(space);
    }
    (made, ada, bot)
}
