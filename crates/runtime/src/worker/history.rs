//! What the model reads: the branch up to where the run began, or a summary of
//! its older part, then the run's own turns.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolyard_models::ChatTurn;
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::event::RunCreated;
use toolyard_protocol::message::Part;
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{Hash, MessageId, TenantId, limits};
use toolyard_store::compactions::{self, Compaction, Reader};
use toolyard_store::messages::{self, Said};
use toolyard_store::{StoreError, Tx, blobs};
use toolyard_tools::prebuilt::READ_RESULT;

use super::turns::{Beginning, Reading, add_message, add_turn};
use super::{Stop, Worker};
use crate::earlier::Earlier;

/// What was said before the run.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Stands for everything older than the first message.
    pub(super) summary: Option<String>,
    /// Each message with its place in the space.
    pub(super) messages: Vec<(i64, Vec<ChatTurn>)>,
}

impl Past {
    fn turns(&self) -> impl Iterator<Item = ChatTurn> + '_ {
        // Not the gateway's word: what users said is in it.
        let told =
            |text: &String| ChatTurn::user(format!("[Summary of the conversation before this]\n{text}"));
        let summary = self.summary.iter().map(told);
        summary.chain(self.messages.iter().flat_map(|(_, turns)| turns.iter().cloned()))
    }
}

/// Fresh from the database.
#[derive(Default)]
struct Read {
    compaction: Option<Compaction>,
    before: Vec<Said>,
    /// Messages that the run took.
    later: Vec<(MessageId, Said)>,
    /// Values that lie beside the log.
    large: HashMap<Hash, Beginning>,
}

impl Worker {
    pub(super) async fn history(&mut self) -> Result<Vec<ChatTurn>, Stop> {
        let Some(created) = self.run.created().cloned() else { return Ok(Vec::new()) };
        // In its parent's conversation a child is a guest.
        let errand = created.errand.shown().map(|errand| ChatTurn::user(errand.prompt.clone()));
        let me = created.agent_entity.clone().filter(|_| errand.is_none());
        let taken: Vec<_> = self.run.turns().iter().flat_map(|t| t.taken.clone()).collect();
        let blobs = self.large_results();
        let reading = self.reading();
        let known = self.before.is_some();
        let alone = taken.is_empty() && blobs.is_empty();
        let read = match self.earlier.take().and_then(Earlier::open) {
            _ if known && alone => Read::default(),
            Some((compaction, before)) if alone => Read { compaction, before, ..Read::default() },
            _ => self.read_history(created, known, taken, blobs, reading.clone()).await?,
        };
        let Read { compaction, before, later, large } = read;
        let past = self.before.get_or_insert_with(|| Past {
            summary: compaction.map(|c| c.summary).filter(|text| !text.is_empty()),
            messages: before
                .into_iter()
                .map(|message| {
                    let (seq, mut turns) = (message.seq, Vec::new());
                    add_message(&mut turns, message, me.as_ref(), &reading);
                    (seq, turns)
                })
                .collect(),
        });
        let mut turns: Vec<ChatTurn> = past.turns().chain(errand).collect();
        for turn in self.run.turns() {
            add_turn(&mut turns, turn, &later, &large, me.as_ref(), &reading);
        }
        Ok(turns)
    }

    /// What was said before the run (unless it is known: it never changes),
    /// what the run took since, and its large results.
    async fn read_history(
        &mut self,
        created: RunCreated,
        known: bool,
        taken: Vec<MessageId>,
        blobs: Vec<Hash>,
        reading: Reading,
    ) -> Result<Read, Stop> {
        let tenant = self.tenant.clone();
        self.patiently(move |tx| {
            let (tenant, created, taken, blobs, reading) =
                (tenant.clone(), created.clone(), taken.clone(), blobs.clone(), reading.clone());
            Box::pin(async move {
                let mut read = Read::default();
                if let (Some(space), false) = (&created.space, known) {
                    let (branch, to) = (&created.branch, created.history_to);
                    let reader = Reader { space, branch, agent: created.agent_entity.as_ref() };
                    read.compaction = compactions::latest(tx, &tenant, reader, to).await?;
                    let after = read.compaction.as_ref().map_or(0, |c| c.up_to);
                    read.before = messages::history(tx, &tenant, space, branch, after, to).await?;
                }
                for id in &taken {
                    let taken = messages::get(tx, &tenant, id).await?;
                    read.later.extend(taken.map(|message| (id.clone(), Said::from(message))));
                }
                // The newest files first: there is room for so many.
                let mut room = limits::MODEL_FILES_BYTES;
                let later = read.later.iter_mut().map(|(_, message)| message);
                for message in later.rev().chain(read.before.iter_mut().rev()) {
                    bring_files(tx, &tenant, &mut message.parts, &mut room).await?;
                }
                for hash in blobs {
                    if let Some(bytes) = blobs::get(tx, &tenant, &hash).await? {
                        read.large.insert(hash, reading.of(&String::from_utf8_lossy(&bytes)));
                    }
                }
                Ok(read)
            })
        })
        .await
    }

    /// How the model reads results: by its own tool, if it has one for that.
    fn reading(&self) -> Reading {
        let reads = |spec: &&ToolSpec| match &spec.execution {
            Execution::Prebuilt(prebuilt) => prebuilt.action == READ_RESULT,
            _ => false,
        };
        let tool = self.tools().and_then(|tools| tools.set.0.iter().find(reads));
        Reading {
            chars: self.rt.settings.tool_result_tokens.saturating_mul(limits::TOKEN_CHARS),
            tool: tool.map(|spec| spec.name.to_string()),
        }
    }

    /// The values of this run that lie beside the log.
    fn large_results(&self) -> Vec<Hash> {
        let steps = self.run.turns().iter().flat_map(|t| &t.steps);
        let results = steps.flat_map(|s| s.results.iter().flatten());
        results.filter_map(|r| r.blob.as_ref().map(|b| b.blob.clone())).collect()
    }
}

/// Uploaded files travel inside the request: no vendor reaches the gateway.
async fn bring_files(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    parts: &mut [Part],
    room: &mut i64,
) -> Result<(), StoreError> {
    for part in parts {
        let Part::File { file: Some(file), url: url @ None, media_type, .. } = part else { continue };
        let Some(row) = blobs::file(tx, tenant, file).await? else { continue };
        if row.bytes > *room {
            continue;
        }
        *room -= row.bytes;
        if let Some(bytes) = blobs::get(tx, tenant, &row.hash).await? {
            *url = Some(format!("data:{media_type};base64,{}", STANDARD.encode(&bytes)));
        }
    }
    Ok(())
}
