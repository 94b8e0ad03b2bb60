//! A database that has seen a lot: two real runs of the gateway, one finished
//! and one waiting, written many times through the gateway's own store. Every
//! copy has its own space, messages and ids, as the real ones have.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use toolyard_protocol::event::Event;
use toolyard_protocol::message::Message;
use toolyard_protocol::{MessageId, NodeId, RunId, SpaceId, TenantId};
use toolyard_store::log::{self, Append};
use toolyard_store::messages::NewMessage;
use toolyard_store::runs::{After, NewRun, Owner, RunRow};
use toolyard_store::spaces::{Member, Space};
use toolyard_store::{Settings, Store, StoreError, Tx, messages, runs, spaces};

use super::DriveError;
use super::errand::{Errand, Tool};
use super::target::{Programs, Target};

/// One run in so many waits for a client.
const WAITING_EVERY: usize = 100;
/// Runs per commit.
const BATCH: usize = 200;
/// Kinds of ids that a copy needs its own of.
const OWN: [&str; 5] = ["run_", "spc_", "msg_", "call_", "wait_"];
/// Digits of an id after its kind.
const DIGITS: usize = 32;

/// A real run with all that belongs to it.
#[derive(Debug, Clone)]
struct Template {
    row: RunRow,
    space: Space,
    members: Vec<Member>,
    messages: Vec<Message>,
    /// Encoded: ids are replaced in the text.
    events: Vec<String>,
}

fn broken(error: impl std::fmt::Display) -> DriveError {
    DriveError::Fill(error.to_string())
}

pub(super) async fn fill(
    programs: &Programs,
    upstream: SocketAddr,
    folder: &Path,
    count: usize,
) -> Result<(), DriveError> {
    make_templates(programs, upstream, folder).await?;
    let store = Store::open(&Settings::Sqlite { folder: folder.to_owned() }).await.map_err(broken)?;
    let templates: Arc<[Template]> = read_templates(&store).await.map_err(broken)?.into();
    let (Some(finished), Some(waiting)) = (
        templates.iter().position(|t| t.row.status.is_final()),
        templates.iter().position(|t| !t.row.status.is_final()),
    ) else {
        return Err(DriveError::Fill("the two sample runs are not in the database".to_owned()));
    };
    let mut done = 0;
    while done < count {
        let numbers = done..count.min(done + BATCH);
        done = numbers.end;
        let templates = templates.clone();
        let copied = store.write::<_, log::AppendError, _>(move |tx| {
            Box::pin(async move {
                for number in numbers {
                    let at = if number % WAITING_EVERY == 0 { waiting } else { finished };
                    if let Some(template) = templates.get(at) {
                        copy(tx, template).await?;
                    }
                }
                Ok(())
            })
        });
        copied.await.map_err(broken)?;
    }
    store.close().await;
    Ok(())
}

/// Lets the gateway make one run of each kind.
async fn make_templates(programs: &Programs, upstream: SocketAddr, folder: &Path) -> Result<(), DriveError> {
    let server = programs.start(Target::Toolyard, upstream, folder).await?;
    let Some(server) = server else { return Ok(()) };
    let api = Target::Toolyard.api(server.address).await?;
    api.run(&api.seat().await?, &Errand::text(20)).await?;
    let errand = Errand { abandon: true, ..Errand::tool(Tool::Client, 20) };
    api.run(&api.seat().await?, &errand).await?;
    Ok(())
}

async fn read_templates(store: &Store) -> Result<Vec<Template>, StoreError> {
    store
        .read(move |tx| {
            Box::pin(async move {
                let tenant = TenantId::default_tenant();
                let mut templates = Vec::new();
                for row in runs::list(tx, &tenant, None, None, None, 2).await? {
                    let Some(id) = row.space.clone() else { continue };
                    let Some(space) = spaces::get(tx, &tenant, &id).await? else { continue };
                    let logged = log::read(tx, &tenant, &row.id, 0, 1000).await?;
                    templates.push(Template {
                        members: spaces::members(tx, &tenant, &id).await?,
                        messages: messages::page(tx, &tenant, &id, Some(0), None, 100).await?,
                        events: logged.iter().map(|l| l.event.encode()).collect(),
                        row,
                        space,
                    });
                }
                Ok(templates)
            })
        })
        .await
}

/// New ids for one copy, the same for the same old id.
#[derive(Default)]
struct Ids(BTreeMap<String, String>);

impl Ids {
    fn of(&mut self, old: &str) -> String {
        let fresh = || {
            let kind = old.split_once('_').map_or("", |(kind, _)| kind);
            let digits = RunId::mint().as_str().trim_start_matches("run_").to_owned();
            format!("{kind}_{digits}")
        };
        self.0.entry(old.to_owned()).or_insert_with(fresh).clone()
    }

    /// A text with its own ids.
    fn replace(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, kind)) = OWN.iter().filter_map(|kind| rest.find(kind).map(|at| (at, kind))).min()
        {
            let end = at + kind.len() + DIGITS;
            out.push_str(&rest[..at]);
            match rest.get(at..end) {
                Some(old) if old[kind.len()..].bytes().all(|b| b.is_ascii_hexdigit()) => {
                    out.push_str(&self.of(old));
                    rest = &rest[end..];
                }
                _ => {
                    out.push_str(kind);
                    rest = &rest[at + kind.len()..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}

async fn copy(tx: &mut Tx<'_>, template: &Template) -> Result<(), log::AppendError> {
    let mut ids = Ids::default();
    let row = &template.row;
    let wrong = |_| StoreError::Broken("a copied id is not an id".into());
    let run = RunId::parse(&ids.of(row.id.as_str())).map_err(wrong)?;
    let space = SpaceId::parse(&ids.of(template.space.id.as_str())).map_err(wrong)?;
    let fresh = Space { id: space.clone(), last_pos: 0, ..template.space.clone() };
    spaces::insert(tx, &row.tenant, &fresh).await?;
    for member in &template.members {
        spaces::put_member(tx, &row.tenant, &space, &member.entity, member.role).await?;
    }
    for message in &template.messages {
        let copied = NewMessage {
            id: MessageId::parse(&ids.of(message.id.as_str())).map_err(wrong)?,
            speaker: message.speaker,
            entity: message.entity.clone(),
            run: message.run.as_ref().map(|_| run.clone()),
            branch: message.branch.clone(),
            parts: message.parts.clone(),
            show_reasoning: message.show_reasoning,
            metadata: message.metadata.clone(),
        };
        messages::insert(tx, &row.tenant, &space, copied).await?;
    }
    let owner = Owner { node: NodeId::mint(), incarnation: "filler".to_owned() };
    let new = NewRun {
        tenant: row.tenant.clone(),
        id: run.clone(),
        space: Some(space.clone()),
        agent_entity: row.agent_entity.clone(),
        agent: row.agent.clone(),
        agent_hash: row.agent_hash.clone(),
        root: run.clone(),
        parent: None,
        triggered_by: row.triggered_by.clone(),
        depth: row.depth,
        on_message: row.on_message,
    };
    runs::insert(tx, &new, Some(&owner)).await?;
    let decode = |text: &String| Event::decode(&ids.replace(text)).map_err(StoreError::from);
    let events: Vec<Event> = template.events.iter().map(decode).collect::<Result<_, _>>()?;
    let after = After { status: row.status, reason: row.reason, release: true, error: None };
    let append = Append {
        tenant: &row.tenant,
        run: &run,
        root: &run,
        space: Some(&space),
        epoch: 1,
        owner: &owner,
        expected: 0,
        events: &events,
        after: &after,
    };
    log::append(tx, &append).await?;
    Ok(())
}
