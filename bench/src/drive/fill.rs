//! A database that has seen a lot: two real runs of the gateway, one finished
//! and one waiting, written many times through the gateway's own store. Every
//! copy has its own space, messages and ids, as the real ones have.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use toolyard_protocol::event::Event;
use toolyard_protocol::message::Message;
use toolyard_protocol::{MessageId, NodeId, RunId, SpaceId, TenantId};
use toolyard_store::log::{self, Append, Logged};
use toolyard_store::messages::NewMessage;
use toolyard_store::runs::{After, NewRun, Owner, RunRow};
use toolyard_store::spaces::{Member, Space};
use toolyard_store::{Settings, Store, StoreError, Tx, messages, runs, spaces};

use super::DriveError;
use super::errand::{Errand, Tool};
use super::target::{Programs, Target};

/// Runs per commit.
const BATCH: usize = 200;
/// Pieces of text of each run.
const PIECES: u32 = 20;
/// A real run with all that belongs to it.
#[derive(Debug, Clone)]
struct Template {
    row: RunRow,
    space: Space,
    members: Vec<Member>,
    messages: Vec<Message>,
    /// Encoded: ids are replaced in the text.
    events: Vec<String>,
    /// What was minted for this run: its ids without their kinds. Other ids are
    /// derived from these.
    minted: Vec<String>,
    /// The call that it waits for, if it waits.
    call: Option<String>,
}

/// A run in the database that waits for its client.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) run: String,
    pub(super) call: String,
    /// What its client sees from the answer on.
    pub(super) errand: Errand,
}

fn broken(error: impl std::fmt::Display) -> DriveError {
    DriveError::Fill(error.to_string())
}

/// Fills the database of a folder. One run in `waiting_every` waits; those are
/// given.
pub(super) async fn fill(
    programs: &Programs,
    upstream: SocketAddr,
    folder: &Path,
    count: usize,
    waiting_every: usize,
) -> Result<Vec<Waiting>, DriveError> {
    make_templates(programs, upstream, folder).await?;
    let store = Store::open(&Settings::Sqlite { folder: folder.to_owned() }).await.map_err(broken)?;
    let templates: Arc<[Template]> = read_templates(&store).await.map_err(broken)?.into();
    let (Some(finished), Some(waiting)) = (
        templates.iter().position(|t| t.row.status.is_final()),
        templates.iter().position(|t| !t.row.status.is_final()),
    ) else {
        return Err(DriveError::Fill("the two sample runs are not in the database".to_owned()));
    };
    let (mut done, mut waits) = (0, Vec::new());
    while done < count {
        let numbers = done..count.min(done + BATCH);
        done = numbers.end;
        let templates = templates.clone();
        let copied = store.write::<_, log::AppendError, _>(move |tx| {
            Box::pin(async move {
                let mut made = Vec::new();
                for number in numbers {
                    let at = if number % waiting_every == 0 { waiting } else { finished };
                    if let Some(template) = templates.get(at) {
                        made.extend(copy(tx, template).await?);
                    }
                }
                Ok(made)
            })
        });
        waits.extend(copied.await.map_err(broken)?);
    }
    store.close().await;
    Ok(waits)
}

/// Lets the gateway make one run of each kind.
async fn make_templates(programs: &Programs, upstream: SocketAddr, folder: &Path) -> Result<(), DriveError> {
    let server = programs.start(Target::Toolyard, upstream, folder).await?;
    let Some(server) = server else { return Ok(()) };
    let api = Target::Toolyard.api(server.address).await?;
    api.run(&api.seat().await?, &Errand::text(PIECES)).await?;
    let errand = Errand { abandon: true, ..Errand::tool(Tool::Client, PIECES) };
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
                    let messages = messages::page(tx, &tenant, &id, Some(0), None, 100).await?;
                    let asked = |l: &Logged| match &l.event {
                        Event::ToolCallRequested(asked) => Some(asked.call.to_string()),
                        _ => None,
                    };
                    let calls: Vec<String> = logged.iter().filter_map(asked).collect();
                    let call = calls.last().filter(|_| !row.status.is_final()).cloned();
                    let said = messages.iter().map(|m| m.id.as_str());
                    let ids = [row.id.as_str(), id.as_str()]
                        .into_iter()
                        .chain(calls.iter().map(String::as_str))
                        .chain(said);
                    templates.push(Template {
                        minted: ids.filter_map(minted).collect(),
                        members: spaces::members(tx, &tenant, &id).await?,
                        events: logged.iter().map(|l| l.event.encode()).collect(),
                        call,
                        messages,
                        row,
                        space,
                    });
                }
                Ok(templates)
            })
        })
        .await
}

/// An id without its kind.
fn minted(id: &str) -> Option<String> {
    id.split_once('_').map(|(_, part)| part.to_owned())
}

/// New ids for one copy, the same for the same old id.
struct Ids<'t>(Vec<(&'t str, String)>);

impl<'t> Ids<'t> {
    fn new(template: &'t Template) -> Self {
        let fresh = |old: &'t String| Some((old.as_str(), minted(RunId::mint().as_str())?));
        Self(template.minted.iter().filter_map(fresh).collect())
    }

    /// A text with its own ids.
    fn own(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    }
}

async fn copy(tx: &mut Tx<'_>, template: &Template) -> Result<Option<Waiting>, log::AppendError> {
    let (ids, row) = (Ids::new(template), &template.row);
    let wrong = |_| StoreError::Broken("a copied id is not an id".into());
    let run = RunId::parse(&ids.own(row.id.as_str())).map_err(wrong)?;
    let space = SpaceId::parse(&ids.own(template.space.id.as_str())).map_err(wrong)?;
    let fresh = Space { id: space.clone(), last_pos: 0, ..template.space.clone() };
    spaces::insert(tx, &row.tenant, &fresh).await?;
    for member in &template.members {
        spaces::put_member(tx, &row.tenant, &space, &member.entity, member.role).await?;
    }
    for message in &template.messages {
        let copied = NewMessage {
            id: MessageId::parse(&ids.own(message.id.as_str())).map_err(wrong)?,
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
    let decode = |text: &String| Event::decode(&ids.own(text)).map_err(StoreError::from);
    let events: Vec<Event> = template.events.iter().map(decode).collect::<Result<_, _>>()?;
    let after = After { status: row.status, reason: row.reason, release: true, error: None };
    let append = Append {
        tenant: &row.tenant,
        run: &run,
        root: &run,
        space: Some(&space),
        child: false,
        epoch: 1,
        owner: &owner,
        expected: 0,
        events: &events.into(),
        speaks: 0,
        after: &after,
    };
    log::append(tx, &append).await?;
    let errand = Errand::text(PIECES);
    Ok(template.call.as_deref().map(|call| Waiting { run: run.to_string(), call: ids.own(call), errand }))
}
