-- +goose Up

-- How many chunks of campaigns were fed for a business; counted in the row of its first session. A feeder that counted the
-- business's room before another chunk was fed must count again.
set local lock_timeout = '2s';

alter table official add column chunks bigint not null default 0;
