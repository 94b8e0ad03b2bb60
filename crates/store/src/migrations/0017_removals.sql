-- Removals of entities and tenants that have begun. One that a death cuts short
-- goes on at the next start. That of a tenant stands under the operator's own.
CREATE TABLE removals (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    actor TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, target)
)@ROWLESS;
