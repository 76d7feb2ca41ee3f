-- +goose Up

-- A table that is busy must not make others queue behind us; the step is tried again.
set local lock_timeout = '2s';

-- The moment of the last backup that was checked.
create table backup (
    one smallint primary key check (one = 1),
    at bigint not null
);

-- Messages that may have left from the installation that a restored copy stands for, until somebody decides about each.
create table unknown_message (
    client_id bigint not null,
    message_id bigint not null,
    since bigint not null, -- the copy's moment: what happened later is not in it
    at bigint not null, -- when it was restored
    primary key (client_id, message_id)
);

-- Since when nothing of the client leaves until a person releases it, because a copy was restored; 0: it is not held.
alter table client add column held_at bigint not null default 0;
