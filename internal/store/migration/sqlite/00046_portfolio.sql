-- +goose Up

-- How many chunks of campaigns were fed for a business; counted in the row of its first session. A feeder that counted the
-- business's room before another chunk was fed must count again.
alter table official add column chunks integer not null default 0;
