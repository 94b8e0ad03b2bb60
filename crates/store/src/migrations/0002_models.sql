CREATE TABLE compactions (
    tenant TEXT NOT NULL,
    space TEXT NOT NULL,
    branch TEXT NOT NULL,
    agent_entity TEXT NOT NULL,
    up_to BIGINT NOT NULL,
    summary TEXT NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (tenant, space, branch, agent_entity, up_to)
)@ROWLESS;
CREATE TABLE agent_usage (
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    day BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, day)
)@ROWLESS;
