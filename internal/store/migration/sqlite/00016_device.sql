-- +goose Up

-- The same as on PostgreSQL; see there.

-- 'device': people's phones and programs take the session's messages. '': its connector sends them.
alter table session add column way text not null default '';
-- A keyed hash of the one-time code that links a device. '': none is offered.
alter table session add column code_mark text not null default '';
create unique index session_code on session (code_mark) where code_mark <> '';

create table device (
    client_id integer not null,
    id integer not null,
    session_id integer not null,
    name text not null,
    token blob not null, -- the SHA-256 of what it shows
    dedupes integer not null,
    assisted integer not null,
    linked_at integer not null,
    seen_at integer not null,
    push blob, -- where it wants to be told of due messages, sealed
    pushed_at integer not null default 0,
    primary key (client_id, id)
) without rowid, strict;
create unique index device_token on device (token);
create index device_session on device (client_id, session_id);

-- Who took a message last. The row's token is the attempt's; an attempt of another way has none here.
create table device_hold (
    client_id integer not null,
    message_id integer not null,
    session_id integer not null,
    device_id integer not null,
    token integer not null,
    take text not null, -- the device's own id of the call
    at integer not null, -- when it was taken, as far as the pace counts it; 0: it does not
    until integer not null,
    done integer not null default 0, -- 1: reported
    primary key (client_id, message_id)
) without rowid, strict;
create index device_hold_open on device_hold (client_id, session_id, until) where done = 0;
create index device_hold_at on device_hold (client_id, session_id, at);
create index device_hold_until on device_hold (until);

insert into counter (noun, next) values ('device', 0);
