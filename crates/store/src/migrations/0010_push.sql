CREATE TABLE push_configs (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    version TEXT NOT NULL,
    owner TEXT NOT NULL,
    sealed @BLOB NOT NULL,
    key_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, run, id)
)@ROWLESS;
