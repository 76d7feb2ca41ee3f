-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- Values that a partner gives to many clients.
create table client_plan (
    partner_id bigint not null,
    id bigint not null,
    name text not null,
    body text not null, -- JSON
    primary key (partner_id, id),
    unique (partner_id, name)
);
insert into counter (noun, next) values ('client_plan', 0);

-- The plan that the client was created with or moved to last; 0: none. The row of the plan may be gone.
alter table client add column plan_id bigint not null default 0;
alter table client add column plan_since integer not null default 0; -- YYYYMMDD: when the plan's days of service began; 0: never
