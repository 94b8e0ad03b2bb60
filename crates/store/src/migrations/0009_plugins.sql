CREATE TABLE curators (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    plugins TEXT NOT NULL,
    signers TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE TABLE curator_keys (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    curator TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    public_key TEXT NOT NULL,
    sealed @BLOB,
    seal_id TEXT,
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
)@ROWLESS;
CREATE INDEX curator_keys_by_curator ON curator_keys (tenant, curator);
CREATE TABLE plugin_versions (
    tenant TEXT NOT NULL,
    plugin TEXT NOT NULL,
    version TEXT NOT NULL,
    hash TEXT NOT NULL,
    document TEXT NOT NULL,
    state TEXT NOT NULL,
    report TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, plugin, version)
);
CREATE TABLE plugins (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    hash TEXT NOT NULL,
    document TEXT NOT NULL,
    signed BIGINT NOT NULL,
    tools TEXT NOT NULL,
    broken TEXT NOT NULL,
    installed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE TABLE plugin_pins (
    tenant TEXT NOT NULL,
    plugin TEXT NOT NULL,
    version TEXT NOT NULL,
    hash TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, plugin)
)@ROWLESS;
CREATE TABLE plugin_revocations (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    version TEXT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, target, version)
)@ROWLESS;
