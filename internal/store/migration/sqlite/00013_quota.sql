-- +goose Up

-- How many of a thing a client may have, where its partner set a limit other than the default.
create table quota (
    client_id integer not null,
    noun text not null, -- sessions, sequences, templates, users, keys
    most integer not null check (most >= 0),
    primary key (client_id, noun)
) without rowid, strict;
