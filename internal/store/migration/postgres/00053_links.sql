-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

alter table client_setting add column track_links smallint not null default 0;
alter table sequence add column track_links smallint not null default 0; -- 0: as the client's setting says; 1: yes; 2: no

-- The addresses in the text of a message that became links of the service, and who followed them. The key is the step of
-- a run, so a message that is sent again has the same links. A row keeps its counts when the message's contents end.
create table link (
    client_id bigint not null,
    run_id bigint not null,
    step integer not null, -- the message's place in its run
    n integer not null, -- the link's number in the message, from 1
    code text collate "C" not null, -- '': the link has ended
    address text not null, -- where it leads
    clicked_at bigint not null default 0, -- when a person first followed it; 0: never
    clicks bigint not null default 0, -- of people
    machines bigint not null default 0, -- how often a machine opened it
    primary key (client_id, run_id, step, n)
);
create unique index link_code on link (code) where code <> '';
