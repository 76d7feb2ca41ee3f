-- +goose Up

-- The same as on PostgreSQL; see there.

-- The caller's own name of what a run is about, such as a booking's number; '': none was given.
alter table run add column reference text not null default '';
create index run_reference on run (client_id, reference) where reference <> '';
