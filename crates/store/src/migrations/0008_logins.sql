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
