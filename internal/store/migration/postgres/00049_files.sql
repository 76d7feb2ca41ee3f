-- +goose Up

-- Files that clients uploaded. Their bytes are in the database, so that every node has them, and a backup is whole.
create table file (
    client_id bigint not null,
    id text not null,
    name text not null,
    type text not null,
    hash bytea not null check (length(hash) = 32),
    size bigint not null check (size > 0),
    width integer not null default 0,
    height integer not null default 0,
    created_at bigint not null,
    stored_at bigint not null default 0, -- 0: parts are still arriving
    needed_at bigint not null, -- when the last message with it is over
    hidden_at bigint not null default 0, -- since when nobody finds it, because it is being removed; 0: it is not
    run_id bigint not null default 0, -- the latest run with it, while all are of one person; 0: none; -1: of several
    small bytea not null default '' check (length(small) <= 16384), -- a small picture of an image: JPEG
    primary key (client_id, id)
);
-- A client has a file once.
create unique index file_hash on file (client_id, hash) where stored_at > 0;
create index file_needed on file (needed_at) where stored_at > 0 and hidden_at = 0;
create index file_begun on file (created_at) where stored_at = 0 and hidden_at = 0;
create index file_hidden on file (hidden_at) where hidden_at > 0;
create index file_run on file (client_id, run_id) where run_id > 0;

create table file_part (
    client_id bigint not null,
    file_id text not null,
    n integer not null check (n >= 0),
    content bytea not null,
    primary key (client_id, file_id, n)
);
