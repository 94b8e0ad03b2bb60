//! What tools bring is kept as files of the user they work for.

use std::sync::Arc;

use toolyard_protocol::{FileId, Hash};
use toolyard_store::blobs::{self, FileRow};
use toolyard_store::{Store, StoreError, failpoint};

use crate::{CallContext, ToolFailure};

/// Keeps the n-th file of a call. Its id is derived from the call: a repeat
/// keeps it once.
pub(crate) async fn keep(
    store: &Arc<Store>,
    context: &CallContext,
    n: usize,
    media_type: String,
    bytes: Vec<u8>,
) -> Result<FileId, ToolFailure> {
    let lost = || ToolFailure::TellModel("The file cannot be stored".to_owned());
    let name = Hash::of(format!("{}/{n}", context.call).as_bytes()).to_string();
    let id = FileId::parse(&format!("file_{}", &name[..26])).map_err(|_| lost())?;
    let (tenant, entity, kept) = (context.tenant.clone(), context.trigger.clone(), id.clone());
    let run = context.run.clone();
    let write = store.write::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let file = FileRow {
                id: kept,
                hash: Hash::of(&bytes),
                media_type,
                name: None,
                bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
                entity,
                run: Some(run),
                created_at: tx.now().await?,
            };
            blobs::put(tx, &tenant, &file.hash, &bytes).await?;
            blobs::put_file(tx, &tenant, &file).await?;
            failpoint::pass("file.before_commit")
        })
    });
    write.await.and_then(|()| failpoint::pass("file.after_commit")).map_err(|_| lost())?;
    Ok(id)
}
