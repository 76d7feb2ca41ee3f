-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- A keyed hash of the number's id at its gateway: no two sessions have the same. '': none.
alter table session add column network_mark text not null default '';
create unique index session_network on session (network_mark) where network_mark <> '';

-- Which message an id of the network means, where the network chooses ids itself.
create table network_id (
    client_id bigint not null,
    session_id bigint not null,
    id text not null,
    message_id bigint not null,
    token bigint not null, -- of the attempt that it answered
    at bigint not null,
    primary key (client_id, session_id, id)
);
create index network_id_at on network_id (at);
