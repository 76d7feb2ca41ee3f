-- +goose Up

-- The same as on PostgreSQL; see there.
alter table session add column page_until integer not null default 0;
alter table session add column page_starts integer not null default 0;
