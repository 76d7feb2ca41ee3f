-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- The version of the secret "data key" that each running server has read. A replacement of the data key waits for all of
-- them.
create table key_reader (
    id text primary key, -- random; of a server process
    version bigint not null,
    until bigint not null -- the process counts as gone after this; by the database's clock
);
alter table node add column reads_keys smallint not null default 0 check (reads_keys in (0, 1)); -- 0: a server of a version before key_reader
