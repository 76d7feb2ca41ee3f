-- +goose Up

-- The same as on PostgreSQL; see there.
alter table client_setting add column keep_media integer not null default 0;
alter table file add column incoming integer not null default 0;

create table incoming_file (
    client_id integer not null,
    reply_id integer not null,
    file_id text not null default '', -- the kept file; '': none
    next_at integer not null, -- when the next attempt is due, or until when the present one may take; 0: there is no further one
    tries integer not null default 0,
    outcome text not null default '', -- JSON: the kept file, or why it is not kept
    primary key (client_id, reply_id)
) strict;
create index incoming_file_next on incoming_file (client_id, next_at) where next_at > 0;
create index incoming_file_file on incoming_file (client_id, file_id) where file_id <> '';
