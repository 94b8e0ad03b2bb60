-- Runs that are gone and whose events and large values still lie here. They
-- are removed in small pieces, so that nobody waits for it.
CREATE TABLE remains (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (tenant, run)
)@ROWLESS;
-- The last position of a space whose event was removed: a reader that stands
-- before it starts over.
ALTER TABLE spaces ADD COLUMN gone_to BIGINT NOT NULL DEFAULT 0;
-- What a run made for a conversation stays with it when the run is gone.
ALTER TABLE files ADD COLUMN space TEXT;
CREATE INDEX files_by_space ON files (tenant, space) WHERE space IS NOT NULL;
