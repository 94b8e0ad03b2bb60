//! The gateway, the tools that run here, and the space to talk in.

use secrecy::ExposeSecret;
use serde_json::Value;
use toolyard_client::{
    Auth, Client, ClientError, EntityId, ErrorCode, Plugin, SpaceId, definition_json, kit,
    mcp_plugin_from_file,
};

use super::super::reach::running;
use super::super::{CliError, Common};
use super::Chat;
use crate::auth::stored_secret;
use crate::config::Config;

/// Where the conversation happens.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) space: SpaceId,
    pub(super) person: EntityId,
    pub(super) agent: String,
    /// Definitions that the agent does not have itself.
    pub(super) tools: Vec<Value>,
    /// Tools that the agent has, and that run here.
    pub(super) shared: Vec<String>,
}

pub(super) async fn client(chat: &Chat, common: &Common, config: &Config) -> Result<Client, CliError> {
    let url = common.url.clone().or_else(|| running(config));
    let url = url.ok_or_else(|| {
        CliError::said("no gateway runs here: start one with `toolyard serve`, or name one with --url")
    })?;
    let auth = stored_secret(config).map_or_else(Auth::none, |key| Auth::secret_key(key.expose_secret()));
    let client = Client::builder().base_url(url).auth(auth).name("toolyard chat").build()?;
    for text in &chat.plugin {
        register(&client, plugin(text)?).await?;
    }
    if let Some(file) = &chat.mcp {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|e| CliError::said(format!("{shown}: {e}")))?;
        let bridge = mcp_plugin_from_file(&text).map_err(|e| CliError::said(format!("{shown}: {e}")))?;
        if let Err(error) = register(&client, bridge).await {
            client.unregister_all().await;
            return Err(error);
        }
    }
    Ok(client)
}

async fn register(client: &Client, plugin: impl Plugin) -> Result<(), CliError> {
    client.register(plugin).await.map_err(|e| CliError::said(e.to_string()))?;
    Ok(())
}

fn plugin(text: &str) -> Result<impl Plugin + use<>, CliError> {
    let (name, at) = text.split_once(':').unwrap_or((text, ""));
    match (name, at) {
        ("filesystem", path) if !path.is_empty() => Ok(kit::filesystem(path)?),
        ("sqlite", path) if !path.is_empty() => Ok(kit::sqlite(path)?),
        ("time", "") => Ok(kit::time()),
        _ => Err(CliError::said(format!("--plugin {text}: use filesystem:/path, sqlite:/file.db or time"))),
    }
}

/// Makes or finds the space, with this person and the agent in it.
pub(super) async fn place(chat: &Chat, client: &Client, config: &Config) -> Result<Place, CliError> {
    let user = user();
    let person = client.entities().person(&format!("terminal:{user}"), &user).await?.id;
    let (space, agent) = match &chat.space {
        None => {
            let agent = chat.agent.clone().unwrap_or_else(|| config.default_agent.clone());
            let entity = agent_entity(client, &agent).await?;
            let space = client.spaces().create("Terminal chat").await?.id;
            client.spaces().add_member(&space, &entity).await?;
            client.spaces().add_member(&space, &person).await?;
            (space, agent)
        }
        Some(id) => {
            let space = SpaceId::parse(id).map_err(|e| CliError::said(e.to_string()))?;
            let agent = join(chat, client, config, &space, &person).await?;
            (space, agent)
        }
    };
    let own = own_tools(client, &agent).await?;
    let (shared, brought): (Vec<_>, Vec<_>) =
        client.tool_definitions().into_iter().partition(|tool| own.contains(&tool.name));
    Ok(Place {
        space,
        person,
        agent,
        tools: brought.iter().map(definition_json).collect(),
        shared: shared.into_iter().map(|tool| tool.name).collect(),
    })
}

/// Who sits at the terminal.
fn user() -> String {
    let named = |name: &str| std::env::var(name).ok().filter(|user| !user.is_empty());
    let user = named("USER").or_else(|| named("LOGNAME")).unwrap_or_else(|| "local".to_owned());
    user.chars().filter(|c| !c.is_control()).take(64).collect()
}

async fn agent_entity(client: &Client, agent: &str) -> Result<EntityId, CliError> {
    match client.entities().agent(&format!("terminal:agent:{agent}"), agent).await {
        Ok(entity) => Ok(entity.id),
        Err(error) if error.is(ErrorCode::NotFound) => {
            let there = agents(client).await.unwrap_or_default();
            let said = match there.as_slice() {
                [] => "there is none yet: store one with `toolyard agent put FILE`".to_owned(),
                some => format!("there are: {}", some.join(", ")),
            };
            Err(CliError::said(format!("there is no agent {agent:?}; {said}")))
        }
        Err(error) => Err(error.into()),
    }
}

async fn agents(client: &Client) -> Result<Vec<String>, ClientError> {
    let page = client.request("/api/agents").await?;
    let rows = page.get("agents").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(rows.iter().filter_map(|row| row.get("name").and_then(Value::as_str).map(str::to_owned)).collect())
}

/// The names of tools that the agent's configuration has.
async fn own_tools(client: &Client, agent: &str) -> Result<Vec<String>, ClientError> {
    let found = client.request(&format!("/api/agents/{agent}")).await?;
    let tools = found.pointer("/agent/config/tools").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(tools.iter().filter_map(|tool| tool.get("name").and_then(Value::as_str).map(str::to_owned)).collect())
}

/// Takes a seat in a space that exists; answers which agent is there.
async fn join(
    chat: &Chat,
    client: &Client,
    config: &Config,
    space: &SpaceId,
    person: &EntityId,
) -> Result<String, CliError> {
    let members = client.spaces().members(space).await?;
    if !members.iter().any(|member| member.entity_id == *person) {
        client.spaces().add_member(space, person).await?;
    }
    let mut there = Vec::new();
    for member in members.iter().filter(|member| member.kind == "agent") {
        there.extend(client.entities().get(&member.entity_id).await?.agent_name);
    }
    let wanted = match (&chat.agent, there.first()) {
        (Some(agent), _) => agent.clone(),
        (None, Some(agent)) => return Ok(agent.clone()),
        (None, None) => config.default_agent.clone(),
    };
    if !there.contains(&wanted) {
        let entity = agent_entity(client, &wanted).await?;
        client.spaces().add_member(space, &entity).await?;
    }
    Ok(wanted)
}
