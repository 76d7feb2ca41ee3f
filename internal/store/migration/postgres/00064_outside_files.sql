-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- The bytes of files may be outside of the database, in parts as here. place begins the names of the objects; nobody can guess
-- it, and no other file has it. '': the bytes are in the database. Each part has a row, too: with the SHA-256 of an object, or
-- with the bytes.
alter table file add column place text not null default '';
alter table file_part add column hash bytea not null default '' check (length(hash) in (0, 32));
-- Since when a row is there only because its objects must still be removed; 0: it is not.
alter table file add column removed_at bigint not null default 0;
create index file_removed on file (removed_at) where removed_at > 0;
