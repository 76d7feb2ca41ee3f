-- +goose Up

-- The same as on PostgreSQL; see there.

-- A keyed hash of the number's id at its gateway: no two sessions have the same. '': none.
alter table session add column network_mark text not null default '';
create unique index session_network on session (network_mark) where network_mark <> '';

-- Which message an id of the network means, where the network chooses ids itself.
create table network_id (
    client_id integer not null,
    session_id integer not null,
    id text not null,
    message_id integer not null,
    token integer not null, -- of the attempt that it answered
    at integer not null,
    primary key (client_id, session_id, id)
) without rowid, strict;
create index network_id_at on network_id (at);
