ALTER TABLE spaces ADD COLUMN branch TEXT;
CREATE TABLE branches (
    tenant TEXT NOT NULL,
    space TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT NOT NULL,
    fork_pos BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, space, id)
)@ROWLESS;
CREATE TABLE message_names (
    tenant TEXT NOT NULL,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (tenant, space, name)
)@ROWLESS;
CREATE INDEX waits_call ON waits (tenant, call);
