-- +goose Up

-- The same as on PostgreSQL; see there.

-- pushed_at: what came due before was told. push_after: nothing is told earlier.
alter table device add column push_after integer not null default 0;
alter table device add column push_failures integer not null default 0; -- one after the other
create index device_push on device (push_after) where push is not null;
