-- A wait is found by its call. From here on a row of `events` holds all events
-- of one append, which earlier releases cannot read.
DROP INDEX waits_by_id;
