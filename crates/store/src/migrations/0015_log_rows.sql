-- A wait is found by its call. From here on a row of `events` may hold several
-- events of one append, which earlier releases cannot read.
DROP INDEX waits_by_id;
-- The runs of a space are listed by their ids, which grow.
DROP INDEX runs_space;
CREATE INDEX runs_space ON runs (tenant, space, id);
