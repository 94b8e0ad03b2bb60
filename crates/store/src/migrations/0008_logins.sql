-- Nothing was ever kept in the first form of this table.
DROP TABLE mcp_records;
CREATE TABLE mcp_records (
    tenant TEXT NOT NULL,
    entity TEXT NOT NULL,
    server TEXT NOT NULL,
    record TEXT NOT NULL,
    sealed @BLOB NOT NULL,
    key_id TEXT NOT NULL,
    expires_at BIGINT,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, entity, server, record)
)@ROWLESS;
CREATE TABLE mcp_logins (
    state TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    entity TEXT NOT NULL,
    server TEXT NOT NULL,
    expires_at BIGINT NOT NULL
)@ROWLESS;
CREATE INDEX mcp_logins_entity ON mcp_logins (tenant, entity, expires_at);
CREATE TABLE mcp_locks (
    tenant TEXT NOT NULL,
    entity TEXT NOT NULL,
    server TEXT NOT NULL,
    holder TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (tenant, entity, server)
)@ROWLESS;
CREATE INDEX waits_by_id ON waits (tenant, id);
ALTER TABLE spaces ADD COLUMN tainted BIGINT NOT NULL DEFAULT 0;
-- One topic holds one memory; the newest of several stays.
DELETE FROM memories WHERE EXISTS (
    SELECT 1 FROM memories newer
    WHERE newer.tenant = memories.tenant AND newer.agent = memories.agent
      AND coalesce(newer.writer, '') = coalesce(memories.writer, '') AND newer.scope = memories.scope
      AND (newer.scope <> 'space' OR coalesce(newer.space, '') = coalesce(memories.space, ''))
      AND newer.topic_key = memories.topic_key AND newer.id > memories.id
);
CREATE UNIQUE INDEX memories_topic ON memories
    (tenant, agent, coalesce(writer, ''), scope, (CASE WHEN scope = 'space' THEN coalesce(space, '') ELSE '' END), topic_key);
