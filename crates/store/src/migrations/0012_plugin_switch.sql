-- A plugin that is switched off stays installed and runs nothing.
ALTER TABLE plugins ADD COLUMN switched_off BIGINT NOT NULL DEFAULT 0;
