-- +goose Up

-- The same as on PostgreSQL; see there.

-- What a session needs to reach its network, sealed for "session <id>".
alter table session add column keys blob not null default x'';

-- What Meta approved, by which an Official session sends a template: JSON, or nothing.
alter table template add column official text not null default '';

-- What the network told of messages that it took; 0: nothing. Only of networks that tell.
create table receipt (
    client_id integer not null,
    message_id integer not null,
    sent_at integer not null default 0,
    delivered_at integer not null default 0,
    read_at integer not null default 0,
    failed_at integer not null default 0,
    primary key (client_id, message_id)
) without rowid, strict;

-- People as a session knows them.
create table contact (
    client_id integer not null,
    session_id integer not null,
    phone text not null,
    window_until integer not null default 0, -- free text may be sent until then; 0: they never wrote
    preference_at integer not null default 0, -- when they last said what they want; 0: never
    primary key (client_id, phone, session_id)
) without rowid, strict;

-- Files that are with the network already.
create table upload (
    client_id integer not null,
    session_id integer not null,
    number text not null, -- the network's id of the sender
    hash text not null, -- of the content and its type
    media text not null, -- the network's id of the file
    until integer not null, -- not used after
    primary key (client_id, session_id, number, hash)
) without rowid, strict;
create index upload_until on upload (until);
