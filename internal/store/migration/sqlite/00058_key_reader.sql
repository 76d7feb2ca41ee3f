-- +goose Up

-- The same as on PostgreSQL; see there.
create table key_reader (
    id text primary key, -- random; of a server process
    version integer not null,
    until integer not null -- the process counts as gone after this; by the database's clock
) without rowid, strict;
alter table node add column reads_keys integer not null default 0 check (reads_keys in (0, 1)); -- 0: a server of a version before key_reader
