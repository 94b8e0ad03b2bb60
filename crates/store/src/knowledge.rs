//! Documents that agents can search, cut into pieces. The words are indexed by
//! the database itself; vectors are bytes that the gateway compares.

use toolyard_protocol::{DocumentId, EntityId, Hash, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Sql, Tx, args};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentStatus {
    /// Pieces are being cut; those that are there can be found.
    Indexing,
    /// All pieces can be found by their words; vectors are being made.
    Embedding,
    Ready,
}

impl DocumentStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Indexing => "indexing",
            Self::Embedding => "embedding",
            Self::Ready => "ready",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Indexing, Self::Embedding, Self::Ready].into_iter().find(|s| s.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub id: DocumentId,
    /// None: for all agents of the tenant.
    pub space: Option<SpaceId>,
    /// Who uploaded it.
    pub entity: Option<EntityId>,
    pub title: String,
    pub media_type: String,
    /// Of its text.
    pub bytes: i64,
    pub status: DocumentStatus,
    pub done_bytes: i64,
    pub chunks: i64,
    pub embedded: i64,
    /// Whose vectors its pieces have.
    pub model: Option<String>,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A piece of a document: bytes `start` to `end` of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub start: i64,
    pub end: i64,
    pub text: String,
}

/// A piece that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub row: i64,
    pub document: DocumentId,
    pub title: String,
    /// The piece's number in its document, from 0.
    pub position: i64,
    pub start: i64,
    pub end: i64,
    pub text: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, space, entity, title, media_type, bytes, status, done_bytes, chunks, embedded, model, error, created_at, updated_at FROM documents ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Document, StoreError> {
    Ok(Document {
        id: r.parsed(0, DocumentId::parse)?,
        space: r.opt_parsed(1, SpaceId::parse)?,
        entity: r.opt_parsed(2, EntityId::parse)?,
        title: r.text(3)?,
        media_type: r.text(4)?,
        bytes: r.int(5)?,
        status: r.parsed(6, |t| DocumentStatus::parse(t).ok_or("not a status"))?,
        done_bytes: r.int(7)?,
        chunks: r.int(8)?,
        embedded: r.int(9)?,
        model: r.opt_text(10)?,
        error: r.opt_text(11)?,
        created_at: r.time(12)?,
        updated_at: r.time(13)?,
    })
}

fn hit(r: &Row<'_>) -> Result<Hit, StoreError> {
    Ok(Hit {
        row: r.int(0)?,
        document: r.parsed(1, DocumentId::parse)?,
        title: r.text(2)?,
        position: r.int(3)?,
        start: r.int(4)?,
        end: r.int(5)?,
        text: r.text(6)?,
    })
}

/// SQLite's index of words holds all tenants: this word keeps them apart.
fn mark(tenant: &TenantId) -> String {
    format!("t{}", &Hash::of(tenant.as_str().as_bytes()).as_str()[..24])
}

/// Stores a document whose pieces are still to be cut.
pub async fn insert(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    document: &Document,
    text: &str,
) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO documents (tenant, id, space, entity, title, media_type, bytes, status, done_bytes, chunks, embedded, model, error, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, 'indexing', 0, 0, 0, NULL, NULL, $8, $8)",
        args![
            tenant.as_str(),
            document.id.as_str(),
            document.space.as_ref().map(SpaceId::as_str),
            document.entity.as_ref().map(EntityId::as_str),
            &document.title,
            &document.media_type,
            document.bytes,
            document.created_at
        ],
    )
    .await?;
    tx.exec(
        "INSERT INTO document_texts (tenant, document, text) VALUES ($1, $2, $3)",
        args![tenant.as_str(), document.id.as_str(), text],
    )
    .await?;
    Ok(())
}

/// How many documents a tenant has, or one of its entities stored.
pub async fn count(tx: &mut Tx<'_>, tenant: &TenantId, entity: Option<&EntityId>) -> Result<i64, StoreError> {
    let found = tx
        .one(
            "SELECT count(*) FROM documents WHERE tenant = $1 AND ($2 = '' OR entity = $2)",
            args![tenant.as_str(), entity.map_or("", EntityId::as_str)],
            |r| r.int(0),
        )
        .await?;
    Ok(found.unwrap_or(0))
}

pub async fn get(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &DocumentId,
) -> Result<Option<Document>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

pub async fn text(tx: &mut Tx<'_>, tenant: &TenantId, id: &DocumentId) -> Result<Option<String>, StoreError> {
    tx.one(
        "SELECT text FROM document_texts WHERE tenant = $1 AND document = $2",
        args![tenant.as_str(), id.as_str()],
        |r| r.text(0),
    )
    .await
}

/// Newest first; of one space if given, and only what a member may see.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: Option<&SpaceId>,
    member: Option<&EntityId>,
    before: Option<&DocumentId>,
    limit: u32,
) -> Result<Vec<Document>, StoreError> {
    tx.all(
        select!(
            "WHERE tenant = $1 AND ($2 = '' OR space = $2) AND ($3 = '' OR EXISTS (SELECT 1 FROM members m WHERE m.tenant = documents.tenant AND m.space = documents.space AND m.entity = $3)) \
             AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5"
        ),
        args![
            tenant.as_str(),
            space.map_or("", SpaceId::as_str),
            member.map_or("", EntityId::as_str),
            before.map_or("", DocumentId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// A document that waits to be cut or for vectors, the oldest first.
pub async fn next_work(
    tx: &mut Tx<'_>,
    status: DocumentStatus,
) -> Result<Option<(TenantId, Document)>, StoreError> {
    let sql = "SELECT id, space, entity, title, media_type, bytes, status, done_bytes, chunks, embedded, model, error, created_at, updated_at, tenant FROM documents \
               WHERE status = $1 AND status <> 'ready' ORDER BY updated_at LIMIT 1";
    tx.one(sql, args![status.as_str()], |r| Ok((r.parsed(14, TenantId::parse)?, row(r)?))).await
}

/// Adds the next pieces behind `document.done_bytes`. False if somebody else
/// has done so: then nothing is written.
pub async fn add_chunks(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    document: &Document,
    chunks: &[Chunk],
    done_bytes: i64,
    status: DocumentStatus,
) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let count = i64::try_from(chunks.len()).unwrap_or(0);
    let moved = tx
        .exec(
            "UPDATE documents SET done_bytes = $1, chunks = chunks + $2, status = $3, updated_at = $4 WHERE tenant = $5 AND id = $6 AND status = 'indexing' AND done_bytes = $7",
            args![
                done_bytes,
                count,
                status.as_str(),
                now,
                tenant.as_str(),
                document.id.as_str(),
                document.done_bytes
            ],
        )
        .await?;
    if moved == 0 {
        return Ok(false);
    }
    for (position, chunk) in (document.chunks..).zip(chunks) {
        add_chunk(tx, tenant, &document.id, position, chunk).await?;
    }
    Ok(true)
}

async fn add_chunk(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    document: &DocumentId,
    position: i64,
    chunk: &Chunk,
) -> Result<(), StoreError> {
    let insert = Sql {
        sqlite: "INSERT INTO chunks (tenant, document, position, start_byte, end_byte, text) VALUES ($1, $2, $3, $4, $5, $6) RETURNING row",
        postgres: "INSERT INTO chunks (tenant, document, position, start_byte, end_byte, text, words) VALUES ($1, $2, $3, $4, $5, $6, to_tsvector('english', $6)) RETURNING row",
    };
    let row = tx
        .one(
            insert,
            args![tenant.as_str(), document.as_str(), position, chunk.start, chunk.end, &chunk.text],
            |r| r.int(0),
        )
        .await?;
    if !tx.is_postgres() {
        tx.exec(
            "INSERT INTO chunk_words (rowid, tenant, words) VALUES ($1, $2, $3)",
            args![row, &mark(tenant), &chunk.text],
        )
        .await?;
    }
    Ok(())
}

/// Pieces that have some of these words, the best first: of documents for all,
/// and of those of the space.
pub async fn search(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: Option<&SpaceId>,
    words: &[String],
    limit: u32,
) -> Result<Vec<Hit>, StoreError> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let sql = Sql {
        sqlite: "SELECT c.row, c.document, d.title, c.position, c.start_byte, c.end_byte, c.text FROM chunk_words JOIN chunks c ON c.row = chunk_words.rowid JOIN documents d ON d.tenant = c.tenant AND d.id = c.document \
                 WHERE chunk_words MATCH $1 AND c.tenant = $2 AND (d.space IS NULL OR d.space = $3) ORDER BY bm25(chunk_words, 0.0, 1.0), c.row LIMIT $4",
        // The words are joined by "and"; a question has words that its answer has not.
        postgres: "SELECT c.row, c.document, d.title, c.position, c.start_byte, c.end_byte, c.text FROM replace(plainto_tsquery('english', $1)::text, '&', '|') q(t), chunks c JOIN documents d ON d.tenant = c.tenant AND d.id = c.document \
                   WHERE c.words @@ q.t::tsquery AND c.tenant = $2 AND (d.space IS NULL OR d.space = $3) ORDER BY ts_rank_cd(c.words, q.t::tsquery) DESC, c.row LIMIT $4",
    };
    let asked = if tx.is_postgres() {
        words.join(" ")
    } else {
        let words: Vec<String> = words.iter().map(|word| format!("\"{}\"", word.replace('"', ""))).collect();
        format!("tenant:\"{}\" AND words:({})", mark(tenant), words.join(" OR "))
    };
    tx.all(sql, args![&asked, tenant.as_str(), space.map_or("", SpaceId::as_str), i64::from(limit)], hit)
        .await
}

/// The pieces of these rows, as far as they may be read from the space.
pub async fn hits(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: Option<&SpaceId>,
    rows: &[i64],
) -> Result<Vec<Hit>, StoreError> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let one = tx
            .one(
                "SELECT c.row, c.document, d.title, c.position, c.start_byte, c.end_byte, c.text FROM chunks c JOIN documents d ON d.tenant = c.tenant AND d.id = c.document \
                 WHERE c.row = $1 AND c.tenant = $2 AND (d.space IS NULL OR d.space = $3)",
                args![*row, tenant.as_str(), space.map_or("", SpaceId::as_str)],
                hit,
            )
            .await?;
        found.extend(one);
    }
    Ok(found)
}

/// Vectors of one model, a page behind a row: to compare with a question's.
pub async fn vectors(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: Option<&SpaceId>,
    model: &str,
    after: i64,
    limit: u32,
) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
    tx.all(
        "SELECT c.row, c.vector FROM chunks c JOIN documents d ON d.tenant = c.tenant AND d.id = c.document \
         WHERE c.tenant = $1 AND (d.space IS NULL OR d.space = $2) AND c.model = $3 AND c.row > $4 ORDER BY c.row LIMIT $5",
        args![tenant.as_str(), space.map_or("", SpaceId::as_str), model, after, i64::from(limit)],
        |r| Ok((r.int(0)?, r.bytes(1)?)),
    )
    .await
}

/// Pieces of a document without a vector of this model.
pub async fn without_vector(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &DocumentId,
    model: &str,
    limit: u32,
) -> Result<Vec<(i64, String)>, StoreError> {
    tx.all(
        "SELECT row, text FROM chunks WHERE tenant = $1 AND document = $2 AND coalesce(model, '') <> $3 ORDER BY position LIMIT $4",
        args![tenant.as_str(), id.as_str(), model, i64::from(limit)],
        |r| Ok((r.int(0)?, r.text(1)?)),
    )
    .await
}

pub async fn put_vector(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    row: i64,
    model: &str,
    vector: &[u8],
) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE chunks SET model = $1, vector = $2 WHERE tenant = $3 AND row = $4",
        args![model, vector, tenant.as_str(), row],
    )
    .await?;
    Ok(())
}

/// Counts a document's vectors again. It is ready when every piece has one.
pub async fn count_vectors(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &DocumentId,
    model: &str,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "UPDATE documents SET model = $1, embedded = (SELECT count(*) FROM chunks c WHERE c.tenant = $2 AND c.document = $3 AND c.model = $1), error = NULL, updated_at = $4 WHERE tenant = $2 AND id = $3",
        args![model, tenant.as_str(), id.as_str(), now],
    )
    .await?;
    tx.exec(
        "UPDATE documents SET status = 'ready' WHERE tenant = $1 AND id = $2 AND status = 'embedding' AND embedded >= chunks",
        args![tenant.as_str(), id.as_str()],
    )
    .await?;
    Ok(())
}

/// Keeps why vectors are late, and puts the document behind the others.
pub async fn note(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &DocumentId,
    error: &str,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    tx.exec(
        "UPDATE documents SET error = $1, updated_at = $2 WHERE tenant = $3 AND id = $4",
        args![error, now, tenant.as_str(), id.as_str()],
    )
    .await?;
    Ok(())
}

/// Another model makes the vectors from now on: documents of all tenants get
/// new ones. Without a model, nothing waits for vectors.
pub async fn choose_model(tx: &mut Tx<'_>, model: Option<&str>) -> Result<(), StoreError> {
    match model {
        Some(model) => {
            tx.exec(
                "UPDATE documents SET status = 'embedding', embedded = 0 WHERE status = 'ready' AND chunks > 0 AND coalesce(model, '') <> $1",
                args![model],
            )
            .await?
        }
        None => tx.exec("UPDATE documents SET status = 'ready' WHERE status = 'embedding'", &[]).await?,
    };
    Ok(())
}

/// Removes a document and all its pieces.
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &DocumentId) -> Result<bool, StoreError> {
    let named = args![tenant.as_str(), id.as_str()];
    if !tx.is_postgres() {
        tx.exec(
            "DELETE FROM chunk_words WHERE rowid IN (SELECT row FROM chunks WHERE tenant = $1 AND document = $2)",
            named,
        )
        .await?;
    }
    tx.exec("DELETE FROM chunks WHERE tenant = $1 AND document = $2", named).await?;
    tx.exec("DELETE FROM document_texts WHERE tenant = $1 AND document = $2", named).await?;
    Ok(tx.exec("DELETE FROM documents WHERE tenant = $1 AND id = $2", named).await? > 0)
}

/// Removes the documents of a space.
pub async fn delete_of_space(tx: &mut Tx<'_>, tenant: &TenantId, space: &SpaceId) -> Result<(), StoreError> {
    let documents = tx
        .all(
            "SELECT id FROM documents WHERE tenant = $1 AND space = $2",
            args![tenant.as_str(), space.as_str()],
            |r| r.parsed(0, DocumentId::parse),
        )
        .await?;
    for document in documents {
        delete(tx, tenant, &document).await?;
    }
    Ok(())
}
