-- Which run a large value belongs to. Values that were there before this step
-- are kept for good: nobody wrote down whose they are.
ALTER TABLE blobs ADD COLUMN kept BIGINT NOT NULL DEFAULT 1;
CREATE TABLE blob_uses (
    tenant TEXT NOT NULL,
    run TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (tenant, run, hash)
)@ROWLESS;
CREATE INDEX blob_uses_by_hash ON blob_uses (tenant, hash);
CREATE INDEX files_by_hash ON files (tenant, hash);
CREATE INDEX files_by_entity ON files (tenant, entity);
-- The run whose tool made a file.
ALTER TABLE files ADD COLUMN run TEXT;
CREATE INDEX files_by_run ON files (tenant, run);
-- Which node has a parcel in hand: if it dies, another one takes it at once.
ALTER TABLE outbox ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
CREATE INDEX outbox_held ON outbox (held_by) WHERE held_by <> '';
