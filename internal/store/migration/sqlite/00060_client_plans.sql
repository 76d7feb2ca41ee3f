-- +goose Up

-- The same as on PostgreSQL; see there.
create table client_plan (
    partner_id integer not null,
    id integer not null,
    name text not null,
    body text not null,
    primary key (partner_id, id),
    unique (partner_id, name)
) strict;
insert into counter (noun, next) values ('client_plan', 0);

alter table client add column plan_id integer not null default 0;
alter table client add column plan_since integer not null default 0;
