-- +goose Up

-- The same as on PostgreSQL; see there.
alter table campaign_feed add column held_out integer not null default 0;
