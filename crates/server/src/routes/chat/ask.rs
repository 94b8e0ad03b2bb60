//! `POST /api/chat`: from the client's history to a turn, and from the turn to
//! a stream.

use axum::response::Response;
use serde_json::Value;
use toolyard_dialects::ai_sdk::{self, Asked, Options};
use toolyard_protocol::message::Part;
use toolyard_protocol::picks::{OTHERS, Picks};
use toolyard_protocol::{AgentName, EntityId, KeyKind, limits};
use toolyard_runtime::{Answer, NameRule, Replied, Reply, Turn, Turned, tool_name_of};

use super::wire::Wire;
use crate::http::Refusal;
use crate::routes::call::Call;
use crate::routes::{answer, models};

/// Tools for the platform's own pages: a client that is no page has no use for them.
const PAGE_TOOLS: &str = "category:ui";

pub(super) async fn ask(call: Call) -> Result<Response, Refusal> {
    let wire = Wire::of(&call)?;
    let body: Value = call.json()?;
    let asked = Asked::read(&body).map_err(|e| Refusal::bad_request(e.to_string()))?;
    drop(body);
    let held = Options {
        announced: asked.announced.iter().cloned().collect(),
        questions: asked.questions.iter().cloned().collect(),
        ..Options::default()
    };
    let turn = turn(&call, &wire, asked)?;
    let turned = call.app.runtime.turn(turn).await?;
    log(&turned);
    let Turned { space, run, start, kept, viewer, .. } = turned;
    let held = Options { kept: kept.into_iter().collect(), ..held };
    Ok(wire.tell(call, viewer, (space, run), start, held))
}

fn turn(call: &Call, wire: &Wire, asked: Asked) -> Result<Turn, Refusal> {
    check(call, &asked)?;
    let bad = |field: &str, e: &dyn std::fmt::Display| Refusal::bad_request(format!("{field}: {e}"));
    let mut by = call.principal.clone();
    if let (KeyKind::Secret, Some(entity)) = (by.kind, &asked.entity) {
        by.entity = Some(EntityId::parse(entity).map_err(|e| bad("entityId", &e))?);
    }
    let agent = asked.agent.as_deref().map(AgentName::parse).transpose().map_err(|e| bad("agent", &e))?;
    let default_agent =
        AgentName::parse(&call.app.config.default_agent).map_err(|e| bad("default_agent", &e))?;
    let excluded =
        |tool: &&Value| tool_name_of(tool).is_none_or(|name| !asked.excluded.iter().any(|e| e == name));
    let tools: Vec<Value> = asked.tools.iter().filter(excluded).cloned().collect();
    let brought = call.app.runtime.accept_client_tools(&by, NameRule::Chat, &tools)?;
    for warning in brought.warnings() {
        tracing::warn!(warning, "a client's tool");
    }
    Ok(Turn {
        agent,
        default_agent,
        thread: asked.thread.clone(),
        picks: picks(&asked, wire),
        output: None,
        model: models::named(call, asked.model)?,
        metadata: answer::metadata(asked.metadata)?,
        tools: brought,
        by,
        items: asked.items,
        replies: asked.replies.into_iter().map(reply).collect(),
        cut: asked.cut,
        trace: call.trace(),
    })
}

/// What a turn cannot hold.
fn check(call: &Call, asked: &Asked) -> Result<(), Refusal> {
    for name in asked.items.iter().filter_map(|item| item.name.as_ref()) {
        if name.chars().count() > limits::LABEL_CHARS {
            let most = limits::LABEL_CHARS;
            return Err(Refusal::bad_request(format!("messages: an id has more than {most} characters")));
        }
    }
    for item in &asked.items {
        answer::metadata(item.metadata.clone())?;
        for part in &item.parts {
            let Part::File { url: Some(url), .. } = part else { continue };
            // What a user attaches is read for the model with the gateway's own means.
            let open = url.starts_with("https://") || url.starts_with("data:");
            if call.principal.kind == KeyKind::Public && !open {
                return Err(Refusal::bad_request("The url of a file must start with https:// or data:"));
            }
        }
    }
    Ok(())
}

fn picks(asked: &Asked, wire: &Wire) -> Option<Picks> {
    let mut picks = Picks { categories: asked.categories.clone(), ..Picks::default() };
    if wire.mcp_mode {
        picks.tools.insert(PAGE_TOOLS.to_owned(), false);
    }
    if let Some(exact) = &asked.exact {
        picks.tools.insert(OTHERS.to_owned(), false);
        picks.tools.extend(exact.iter().map(|name| (name.clone(), true)));
    }
    picks.tools.extend(asked.excluded.iter().map(|name| (name.clone(), false)));
    (!picks.takes_all()).then_some(picks)
}

fn reply(reply: ai_sdk::Reply) -> Reply {
    let said = match reply.said {
        ai_sdk::Replied::Outcome(outcome) => Replied::Outcome(outcome),
        ai_sdk::Replied::Decision { wait, allowed, reason } => {
            let answer =
                if allowed { Answer::Allow { edited: None } } else { Answer::Deny { message: reason } };
            Replied::Answer { wait: Some(wait), answer }
        }
    };
    Reply { call: reply.call, said }
}

/// One line per turn (row H23), and the tools of a run that begins (row H6).
fn log(turned: &Turned) {
    tracing::info!(run = %turned.run, space = %turned.space, fresh = turned.fresh, "chat turn");
    if turned.fresh {
        let total: usize = turned.groups.iter().map(|(_, count)| count).sum();
        let groups: Vec<String> =
            turned.groups.iter().map(|(name, count)| format!("{count} {name}")).collect();
        tracing::info!(run = %turned.run, "Loaded {} = {total} total tools", groups.join(" + "));
    }
}
