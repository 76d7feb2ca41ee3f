-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

alter table client_setting add column keep_media smallint not null default 0; -- 1: files in replies become files of the client
alter table file add column incoming smallint not null default 0; -- 1: only people sent it, and nobody uploaded it

-- The files in replies that are to be kept, and what became of them. A row goes with the reply's text.
create table incoming_file (
    client_id bigint not null,
    reply_id bigint not null,
    file_id text not null default '', -- the kept file; '': none
    next_at bigint not null, -- when the next attempt is due, or until when the present one may take; 0: there is no further one
    tries integer not null default 0,
    outcome text not null default '', -- JSON: the kept file, or why it is not kept
    primary key (client_id, reply_id)
);
create index incoming_file_next on incoming_file (client_id, next_at) where next_at > 0;
create index incoming_file_file on incoming_file (client_id, file_id) where file_id <> '';
