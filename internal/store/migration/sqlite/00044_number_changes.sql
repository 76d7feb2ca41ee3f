-- +goose Up

-- The same as on PostgreSQL; see there.

-- People who got a new number or a new id, as a network told.
create table number_change (
    client_id integer not null,
    id integer not null,
    session_id integer not null,
    mark text not null, -- of the network's message
    old_phone text not null, -- '' if the names had ended before
    new_phone text not null,
    names text not null, -- JSON: the names from then on
    at integer not null, -- when the person changed
    noted_at integer not null,
    undone_at integer not null default 0,
    moved text not null default '', -- JSON: what an undo moves back; '' after 30 days
    primary key (client_id, id)
) strict;
create unique index number_change_mark on number_change (client_id, mark);
create index number_change_old on number_change (client_id, old_phone);
create index number_change_new on number_change (client_id, new_phone);
create index number_change_moved on number_change (noted_at) where moved <> '';

-- Names to which nothing is sent any more, until somebody writes from them.
create table former_name (
    client_id integer not null,
    name text not null,
    change_id integer not null,
    at integer not null, -- when the person changed
    primary key (client_id, name)
) without rowid, strict;
create index former_name_change on former_name (change_id);

insert into counter (noun, next) values ('number_change', 0);
