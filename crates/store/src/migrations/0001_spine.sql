CREATE TABLE tenants (
    id TEXT NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL
)@ROWLESS;
CREATE TABLE keys (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE TABLE entities (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    external_id TEXT,
    display_name TEXT,
    agent TEXT,
    metadata TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE UNIQUE INDEX entities_external ON entities (tenant, external_id) WHERE external_id IS NOT NULL;
CREATE TABLE spaces (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT,
    description TEXT,
    metadata TEXT,
    show_reasoning BIGINT NOT NULL,
    owner TEXT,
    foreign_id TEXT,
    last_pos BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE UNIQUE INDEX spaces_foreign ON spaces (tenant, owner, foreign_id) WHERE foreign_id IS NOT NULL;
CREATE TABLE members (
    tenant TEXT NOT NULL,
    space TEXT NOT NULL,
    entity TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    picks TEXT,
    PRIMARY KEY (tenant, space, entity)
)@ROWLESS;
CREATE INDEX members_entity ON members (tenant, entity);
CREATE TABLE messages (
    tenant TEXT NOT NULL,
    space TEXT NOT NULL,
    pos BIGINT NOT NULL,
    id TEXT NOT NULL,
    speaker TEXT NOT NULL,
    entity TEXT,
    run TEXT,
    branch TEXT NOT NULL,
    parts TEXT NOT NULL,
    show_reasoning BIGINT NOT NULL,
    metadata TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, space, pos)
)@ROWLESS;
CREATE UNIQUE INDEX messages_id ON messages (tenant, id);
CREATE TABLE agents (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE UNIQUE INDEX agents_name ON agents (tenant, name);
CREATE TABLE agent_versions (
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    config TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, hash)
)@ROWLESS;
CREATE TABLE toolsets (
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    tools TEXT NOT NULL,
    PRIMARY KEY (tenant, hash)
)@ROWLESS;
CREATE TABLE runs (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    space TEXT,
    agent_entity TEXT,
    agent TEXT NOT NULL,
    agent_hash TEXT NOT NULL,
    root TEXT NOT NULL,
    parent TEXT,
    triggered_by TEXT,
    depth BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    live BIGINT NOT NULL,
    on_message TEXT NOT NULL,
    last_seq BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    owner TEXT,
    wake_at BIGINT,
    recoveries BIGINT NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS_HOT;
CREATE UNIQUE INDEX runs_live ON runs (tenant, space, agent_entity) WHERE live = 1 AND space IS NOT NULL;
CREATE INDEX runs_space ON runs (tenant, space, created_at);
CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_below ON runs (tenant, root) WHERE parent IS NOT NULL;
CREATE TABLE events (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, run, seq)
)@ROWLESS;
CREATE TABLE space_log (
    tenant TEXT NOT NULL,
    space TEXT NOT NULL,
    last_pos BIGINT NOT NULL,
    run TEXT NOT NULL,
    last_seq BIGINT NOT NULL,
    events BIGINT NOT NULL,
    PRIMARY KEY (tenant, space, last_pos)
)@ROWLESS;
CREATE TABLE waits (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    id TEXT NOT NULL,
    root TEXT NOT NULL,
    space TEXT,
    kind TEXT NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    visibility TEXT NOT NULL,
    rule TEXT NOT NULL,
    payload TEXT NOT NULL,
    opened_seq BIGINT NOT NULL,
    opened_at BIGINT NOT NULL,
    expires_at BIGINT,
    claim_client TEXT,
    claim_until BIGINT,
    ended_seq BIGINT,
    PRIMARY KEY (tenant, run, id)
)@ROWLESS;
CREATE INDEX waits_open ON waits (tenant, opened_at) WHERE ended_seq IS NULL;
CREATE INDEX waits_below ON waits (tenant, root) WHERE run <> root;
CREATE INDEX waits_due ON waits (expires_at) WHERE ended_seq IS NULL AND expires_at IS NOT NULL;
CREATE TABLE nodes (
    id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (id, incarnation)
)@ROWLESS;
CREATE TABLE outbox (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE INDEX outbox_due ON outbox (due_at);
CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    caller TEXT NOT NULL,
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    status BIGINT NOT NULL,
    response TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, caller, route, key)
)@ROWLESS;
CREATE INDEX idempotency_age ON idempotency (at);
CREATE TABLE blobs (
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    bytes @BLOB NOT NULL,
    PRIMARY KEY (tenant, hash)
);
CREATE TABLE files (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    hash TEXT NOT NULL,
    media_type TEXT NOT NULL,
    name TEXT,
    bytes BIGINT NOT NULL,
    entity TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE TABLE grants (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    entity TEXT,
    tool TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE TABLE clients (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    entity TEXT,
    kind TEXT NOT NULL,
    name TEXT,
    capabilities TEXT,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE TABLE audit (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail TEXT,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
