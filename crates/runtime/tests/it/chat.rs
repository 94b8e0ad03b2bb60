//! A client that keeps the history, and a scripted model behind the agent.

use serde_json::{Value, json};
use toolyard_engine::facts::Answer;
use toolyard_models::scripted::{Reply as Line, Upstream};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::{
    AgentName, ApiError, CallId, EntityId, Guarded, KeyKind, MessageId, Principal, RunId, ToolName,
    ToolOutcome,
};
use toolyard_runtime::{BroughtTools, Item, NameRule, Replied, Reply, Turn, Turned};
use toolyard_store::messages;

use crate::yard::{Base, Yard, client_tool, config};

/// Tells each story on SQLite and on PostgreSQL.
macro_rules! stories {
    ($($story:ident,)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $story() {
                super::$story(crate::yard::Base::Sqlite).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $story() {
                super::$story(crate::yard::Base::Postgres).await;
            })*
        }
    };
}
pub(crate) use stories;

pub(crate) fn user(name: &str, text: &str) -> Item {
    Item {
        name: Some(name.to_owned()),
        speaker: Speaker::User,
        parts: vec![Part::text(text)],
        metadata: None,
    }
}

pub(crate) fn assistant(name: &str, parts: Vec<Part>) -> Item {
    Item { name: Some(name.to_owned()), speaker: Speaker::Assistant, parts, metadata: None }
}

pub(crate) fn called(call: &CallId) -> Part {
    Part::ToolCall {
        call: call.clone(),
        tool: ToolName::parse("ask").unwrap(),
        visibility: Visibility::Public,
        args: Guarded::Hidden,
        metadata: Guarded::Hidden,
    }
}

pub(crate) fn output(call: &CallId, value: Value) -> Reply {
    Reply { call: call.clone(), said: Replied::Outcome(ToolOutcome::Ok(value)) }
}

pub(crate) fn answer(call: &CallId, answer: Answer) -> Reply {
    Reply { call: call.clone(), said: Replied::Answer { wait: None, answer } }
}

pub(crate) struct Chat {
    pub(crate) yard: Yard,
    pub(crate) upstream: Upstream,
}

impl Chat {
    pub(crate) async fn new(base: Base, tools: Value, lines: Vec<Line>) -> Self {
        Self::with(base, config(tools, json!({})), lines).await
    }

    pub(crate) async fn with(base: Base, config: Value, lines: Vec<Line>) -> Self {
        let upstream = Upstream::serve(lines).await.unwrap();
        let yard = Yard::told(base, config, &upstream).await;
        Self { yard, upstream }
    }

    pub(crate) fn as_user(&self, entity: &EntityId) -> Principal {
        Principal { kind: KeyKind::Public, entity: Some(entity.clone()), ..self.yard.secret() }
    }

    pub(crate) fn turn(&self, items: Vec<Item>) -> Turn {
        Turn {
            trace: None,
            by: self.as_user(&self.yard.ada),
            agent: None,
            default_agent: AgentName::parse("bot").unwrap(),
            thread: "chat-1".to_owned(),
            items,
            replies: Vec::new(),
            cut: None,
            tools: BroughtTools::default(),
            model: None,
            picks: None,
            output: None,
            metadata: None,
        }
    }

    pub(crate) fn brought(&self, names: &[&str]) -> BroughtTools {
        let tools: Vec<Value> = names.iter().map(|name| client_tool(name)).collect();
        let by = self.as_user(&self.yard.ada);
        self.yard.rt.accept_client_tools(&by, NameRule::Chat, &tools).unwrap()
    }

    pub(crate) async fn take(&self, turn: Turn) -> Turned {
        self.yard.rt.turn(turn).await.unwrap()
    }

    pub(crate) async fn refused(&self, turn: Turn) -> ApiError {
        self.yard.rt.turn(turn).await.unwrap_err()
    }

    pub(crate) async fn say(&self, name: &str, text: &str) -> Turned {
        self.take(self.turn(vec![user(name, text)])).await
    }

    pub(crate) async fn done(&self, turned: &Turned) {
        self.yard.until(&turned.run, RunStatus::Completed).await;
    }

    pub(crate) async fn open_call(&self, run: &RunId) -> CallId {
        self.yard.until(run, RunStatus::WaitingTool).await;
        self.yard.open_waits(run).await[0].wait.call.clone()
    }

    pub(crate) async fn text(&self, message: &MessageId) -> String {
        let (t, id) = (self.yard.tenant.clone(), message.clone());
        let read =
            self.yard.rt.store().read(move |tx| Box::pin(async move { messages::get(tx, &t, &id).await }));
        toolyard_protocol::message::text_of(&read.await.unwrap().unwrap().parts)
    }

    /// What the model was told in its n-th call: role and text.
    pub(crate) fn heard(&self, n: usize) -> Vec<(String, String)> {
        let requests = self.upstream.requests();
        let said = requests[n].body["messages"].as_array().unwrap().clone();
        let told = said.iter().filter(|m| m["role"] != "system");
        told.map(|m| {
            let content = &m["content"];
            let text = content
                .as_str()
                .map_or_else(|| content[0]["text"].as_str().unwrap_or("").to_owned(), str::to_owned);
            (m["role"].as_str().unwrap().to_owned(), text)
        })
        .collect()
    }
}

pub(crate) fn pairs(said: &[(&str, &str)]) -> Vec<(String, String)> {
    said.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
}
