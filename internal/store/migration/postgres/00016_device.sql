-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- 'device': people's phones and programs take the session's messages. '': its connector sends them.
alter table session add column way text not null default '';
-- A keyed hash of the one-time code that links a device. '': none is offered.
alter table session add column code_mark text not null default '';
create unique index session_code on session (code_mark) where code_mark <> '';

create table device (
    client_id bigint not null,
    id bigint not null,
    session_id bigint not null,
    name text not null,
    token bytea not null, -- the SHA-256 of what it shows
    dedupes smallint not null,
    assisted smallint not null,
    linked_at bigint not null,
    seen_at bigint not null,
    push bytea, -- where it wants to be told of due messages, sealed
    pushed_at bigint not null default 0,
    primary key (client_id, id)
);
create unique index device_token on device (token);
create index device_session on device (client_id, session_id);

-- Who took a message last. The row's token is the attempt's; an attempt of another way has none here.
create table device_hold (
    client_id bigint not null,
    message_id bigint not null,
    session_id bigint not null,
    device_id bigint not null,
    token bigint not null,
    take text not null, -- the device's own id of the call
    at bigint not null, -- when it was taken, as far as the pace counts it; 0: it does not
    until bigint not null,
    done smallint not null default 0, -- 1: reported
    primary key (client_id, message_id)
);
create index device_hold_open on device_hold (client_id, session_id, until) where done = 0;
create index device_hold_at on device_hold (client_id, session_id, at);
create index device_hold_until on device_hold (until);

insert into counter (noun, next) values ('device', 0);
