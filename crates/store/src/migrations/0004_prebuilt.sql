CREATE TABLE goals (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    entity TEXT NOT NULL,
    description TEXT NOT NULL,
    priority BIGINT NOT NULL,
    long_term BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    metadata TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE INDEX goals_entity ON goals (tenant, entity);
CREATE TABLE memories (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    writer TEXT,
    space TEXT,
    scope TEXT NOT NULL,
    topic TEXT NOT NULL,
    content TEXT NOT NULL,
    topic_key TEXT NOT NULL,
    search TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE INDEX memories_agent ON memories (tenant, agent);
CREATE INDEX memories_writer ON memories (tenant, writer);
CREATE TABLE plans (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    creator TEXT,
    space TEXT,
    name TEXT NOT NULL,
    instruction TEXT NOT NULL,
    cron TEXT,
    timezone TEXT NOT NULL,
    scheduled_at BIGINT,
    next_run_at BIGINT,
    last_run_at BIGINT,
    last_run TEXT,
    runs BIGINT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE INDEX plans_agent ON plans (tenant, agent);
CREATE INDEX plans_due ON plans (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE TABLE inbox (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    entity TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    level TEXT NOT NULL,
    data TEXT,
    agent TEXT,
    space TEXT,
    run TEXT,
    read_at BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE INDEX inbox_entity ON inbox (tenant, entity, id);
CREATE TABLE documents (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    space TEXT,
    entity TEXT,
    title TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    status TEXT NOT NULL,
    done_bytes BIGINT NOT NULL,
    chunks BIGINT NOT NULL,
    embedded BIGINT NOT NULL,
    model TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE TABLE document_texts (
    tenant TEXT NOT NULL,
    document TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, document)
);
CREATE INDEX documents_work ON documents (status, updated_at) WHERE status <> 'ready';
--sqlite: CREATE TABLE chunks (row INTEGER PRIMARY KEY, tenant TEXT NOT NULL, document TEXT NOT NULL, position BIGINT NOT NULL, start_byte BIGINT NOT NULL, end_byte BIGINT NOT NULL, text TEXT NOT NULL, model TEXT, vector BLOB);
--sqlite: CREATE VIRTUAL TABLE chunk_words USING fts5(tenant, words, content='', contentless_delete=1, tokenize='porter unicode61');
--postgres: CREATE TABLE chunks (row BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant TEXT NOT NULL, document TEXT NOT NULL, position BIGINT NOT NULL, start_byte BIGINT NOT NULL, end_byte BIGINT NOT NULL, text TEXT NOT NULL, model TEXT, vector BYTEA, words TSVECTOR NOT NULL);
--postgres: CREATE INDEX chunk_words ON chunks USING gin (words);
CREATE UNIQUE INDEX chunks_document ON chunks (tenant, document, position);
