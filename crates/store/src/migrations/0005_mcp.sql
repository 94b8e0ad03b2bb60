CREATE TABLE mcp_pins (
    tenant TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    pin TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, server, tool)
)@ROWLESS;
CREATE TABLE mcp_records (
    tenant TEXT NOT NULL,
    entity TEXT NOT NULL,
    server TEXT NOT NULL,
    record TEXT NOT NULL,
    sealed @BLOB NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, entity, server, record)
)@ROWLESS;
