-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- pushed_at: what came due before was told. push_after: nothing is told earlier.
alter table device add column push_after bigint not null default 0;
alter table device add column push_failures smallint not null default 0; -- one after the other
create index device_push on device (push_after) where push is not null;
