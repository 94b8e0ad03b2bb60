//! The agent's plugins at work on what the model is asked. Nothing of it is
//! logged: the log keeps what was said, and the next request is made from that.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use toolyard_models::{ChatTurn, Request};
use toolyard_plugins::hooks::{AskedTool, Chain, Prompt, Said, SaidBy, Stopped};
use toolyard_plugins::shipped::passed_on;
use toolyard_protocol::manifest::HookName;
use toolyard_protocol::message::text_of;
use toolyard_store::failpoint;

use super::hooked::retell;

/// Lets the plugins change what the model is asked.
pub(super) async fn asked(chain: &mut Chain, request: &mut Request) -> Result<(), Stopped> {
    if !chain.has(HookName::OnUserMessage) {
        return Ok(());
    }
    let (messages, places) = said(&request.turns);
    let tools = request.tools.iter().map(|tool| AskedTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.schema.clone(),
    });
    let mut prompt = Prompt {
        messages,
        system_prompt: request.system.clone(),
        tools: tools.collect(),
        provider_tools: match request.provider_tools.is_empty() {
            true => Value::Null,
            false => Value::Object(request.provider_tools.clone()),
        },
    };
    let before = prompt.clone();
    failpoint!("hook.before_run");
    chain.user_message(&mut prompt).await?;
    failpoint!("hook.after_run");
    request.trace = passed_on(chain.state(), None);
    request.system = prompt.system_prompt;
    request.provider_tools = match prompt.provider_tools {
        Value::Object(tools) => tools,
        _ => serde_json::Map::new(),
    };
    if prompt.tools != before.tools {
        request.tools.retain_mut(|tool| {
            let Some(kept) = prompt.tools.iter().find(|t| t.name == tool.name) else { return false };
            tool.description.clone_from(&kept.description);
            tool.schema = kept.parameters.clone();
            true
        });
    }
    if prompt.messages != before.messages {
        request.turns =
            retold(std::mem::take(&mut request.turns), &places, &before.messages, &prompt.messages);
    }
    Ok(())
}

/// The conversation as plain messages, and the turn of each.
fn said(turns: &[ChatTurn]) -> (Vec<Said>, Vec<(usize, usize)>) {
    let (mut messages, mut places) = (Vec::new(), Vec::new());
    for (i, turn) in turns.iter().enumerate() {
        let mut add = |role, content: String, sub| {
            messages.push(Said { role, content, index: Some(messages.len()) });
            places.push((i, sub));
        };
        match turn {
            ChatTurn::System(text) => add(SaidBy::System, text.clone(), 0),
            ChatTurn::User { parts, .. } => add(SaidBy::User, text_of(parts), 0),
            ChatTurn::Assistant { parts, .. } => add(SaidBy::Assistant, text_of(parts), 0),
            ChatTurn::ToolResults(results) => {
                for (sub, result) in results.iter().enumerate() {
                    add(SaidBy::Tool, result.content.clone(), sub);
                }
            }
        }
    }
    (messages, places)
}

/// Puts changed messages back. Calls and results stay where they are: vendors
/// refuse one without the other.
fn retold(turns: Vec<ChatTurn>, places: &[(usize, usize)], before: &[Said], after: &[Said]) -> Vec<ChatTurn> {
    let kept: HashMap<usize, &str> =
        after.iter().filter_map(|m| Some((m.index?, m.content.as_str()))).collect();
    // A new message stands before the next old one.
    let mut added: BTreeMap<usize, Vec<ChatTurn>> = BTreeMap::new();
    for (i, message) in after.iter().enumerate().filter(|(_, m)| m.index.is_none()) {
        let next = after[i..].iter().find_map(|m| m.index).and_then(|at| places.get(at));
        let turn = next.map_or(turns.len(), |(turn, _)| *turn);
        added.entry(turn).or_default().extend(own(message));
    }
    let mut changed: HashMap<usize, Vec<(usize, Option<&str>)>> = HashMap::new();
    for (at, (turn, sub)) in places.iter().enumerate() {
        let new = kept.get(&at).copied();
        if new != before.get(at).map(|m| m.content.as_str()) {
            changed.entry(*turn).or_default().push((*sub, new));
        }
    }
    let mut out = Vec::with_capacity(turns.len());
    let end = turns.len();
    for (i, mut turn) in turns.into_iter().enumerate() {
        out.extend(added.remove(&i).unwrap_or_default());
        let mut stays = true;
        for (sub, new) in changed.remove(&i).unwrap_or_default() {
            stays &= change(&mut turn, sub, new);
        }
        if stays {
            out.push(turn);
        }
    }
    out.extend(added.remove(&end).unwrap_or_default());
    out
}

/// Changes what a turn says. False if it is to go and may.
fn change(turn: &mut ChatTurn, sub: usize, new: Option<&str>) -> bool {
    match (turn, new) {
        (ChatTurn::ToolResults(results), new) => {
            if let Some(result) = results.get_mut(sub) {
                result.content = new.unwrap_or("[removed by a plugin]").to_owned();
            }
            true
        }
        (ChatTurn::System(text), Some(new)) => {
            *text = new.to_owned();
            true
        }
        (ChatTurn::User { parts, .. } | ChatTurn::Assistant { parts, .. }, Some(new)) => {
            retell(parts, new.to_owned());
            true
        }
        (ChatTurn::Assistant { calls, parts }, None) if !calls.is_empty() => {
            retell(parts, String::new());
            true
        }
        (ChatTurn::System(_) | ChatTurn::User { .. } | ChatTurn::Assistant { .. }, None) => false,
    }
}

fn own(message: &Said) -> Option<ChatTurn> {
    let text = message.content.clone();
    match message.role {
        SaidBy::System => Some(ChatTurn::System(text)),
        SaidBy::User => Some(ChatTurn::user(text)),
        SaidBy::Assistant => Some(ChatTurn::assistant(text)),
        // A result without its call.
        SaidBy::Tool => None,
    }
}
