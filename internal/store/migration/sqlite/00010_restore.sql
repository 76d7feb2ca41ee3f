-- +goose Up

-- The same as on PostgreSQL; see there.
create table backup (
    one integer primary key check (one = 1),
    at integer not null
) strict;

create table unknown_message (
    client_id integer not null,
    message_id integer not null,
    since integer not null,
    at integer not null,
    primary key (client_id, message_id)
) without rowid, strict;

alter table client add column held_at integer not null default 0;
