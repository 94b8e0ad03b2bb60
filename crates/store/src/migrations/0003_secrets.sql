CREATE TABLE secrets (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    sealed @BLOB NOT NULL,
    key_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
)@ROWLESS;
CREATE TABLE webhooks (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    on_waiting BIGINT NOT NULL,
    on_completed BIGINT NOT NULL,
    on_failed BIGINT NOT NULL,
    sealed @BLOB NOT NULL,
    key_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_at BIGINT,
    last_status BIGINT,
    failures BIGINT NOT NULL,
    given_up BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
