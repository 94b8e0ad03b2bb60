CREATE TABLE presences (
    tenant TEXT NOT NULL,
    connection TEXT NOT NULL,
    client TEXT NOT NULL,
    entity TEXT,
    node TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, connection)
)@ROWLESS;
CREATE INDEX presences_client ON presences (tenant, client);
CREATE TABLE presence_tools (
    tenant TEXT NOT NULL,
    tool TEXT NOT NULL,
    connection TEXT NOT NULL,
    PRIMARY KEY (tenant, tool, connection)
)@ROWLESS;
CREATE INDEX presence_tools_of ON presence_tools (tenant, connection);
CREATE TABLE tool_uses (
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    calls BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    total_ms BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, tool)
)@ROWLESS;
ALTER TABLE clients ADD COLUMN by_socket BIGINT NOT NULL DEFAULT 0;
ALTER TABLE waits ADD COLUMN claim_connection TEXT;
ALTER TABLE waits ADD COLUMN progressed BIGINT NOT NULL DEFAULT 0;
