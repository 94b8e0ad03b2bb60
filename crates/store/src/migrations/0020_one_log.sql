-- The log of a space was a table of its own, a line for each append, beside the
-- events that it named: one more statement and one more page in every commit.
-- From here on an event's row says its place in the space itself. Spaces have
-- numbers for it: an entry of such an index is a few bytes, not eighty. A number
-- is never given twice.
--sqlite: ALTER TABLE spaces RENAME TO spaces_before;
--sqlite: DROP INDEX spaces_foreign;
--sqlite: CREATE TABLE spaces (
--sqlite:     nr INTEGER PRIMARY KEY AUTOINCREMENT,
--sqlite:     tenant TEXT NOT NULL,
--sqlite:     id TEXT NOT NULL,
--sqlite:     name TEXT,
--sqlite:     description TEXT,
--sqlite:     metadata TEXT,
--sqlite:     show_reasoning BIGINT NOT NULL,
--sqlite:     owner TEXT,
--sqlite:     foreign_id TEXT,
--sqlite:     last_pos BIGINT NOT NULL,
--sqlite:     created_at BIGINT NOT NULL,
--sqlite:     branch TEXT,
--sqlite:     tainted BIGINT NOT NULL DEFAULT 0,
--sqlite:     gone_to BIGINT NOT NULL DEFAULT 0,
--sqlite:     UNIQUE (tenant, id)
--sqlite: );
--sqlite: INSERT INTO spaces (tenant, id, name, description, metadata, show_reasoning, owner, foreign_id, last_pos, created_at, branch, tainted, gone_to) SELECT tenant, id, name, description, metadata, show_reasoning, owner, foreign_id, last_pos, created_at, branch, tainted, gone_to FROM spaces_before ORDER BY tenant, id;
--sqlite: DROP TABLE spaces_before;
--sqlite: CREATE UNIQUE INDEX spaces_foreign ON spaces (tenant, owner, foreign_id) WHERE foreign_id IS NOT NULL;
--postgres: ALTER TABLE spaces ADD COLUMN nr BIGINT GENERATED ALWAYS AS IDENTITY;
ALTER TABLE events ADD COLUMN space BIGINT;
ALTER TABLE events ADD COLUMN pos BIGINT;
UPDATE events SET space = s.nr, pos = l.last_pos - l.last_seq + events.seq
    FROM space_log l JOIN spaces s ON s.tenant = l.tenant AND s.id = l.space
    WHERE events.tenant = l.tenant AND events.run = l.run AND events.seq > l.last_seq - l.events AND events.seq <= l.last_seq;
CREATE INDEX events_space ON events (space, pos) WHERE space IS NOT NULL;
DROP TABLE space_log;
