-- +goose Up

-- The same as on PostgreSQL; see there.
alter table receipt add column category text not null default '';
alter table receipt add column country text not null default '';
alter table receipt add column billable integer not null default 0;
alter table receipt add column charged_at integer not null default 0;

create table statement (
    client_id integer not null,
    month integer not null,
    working_until integer not null default 0,
    frozen_at integer not null default 0,
    counted_to integer not null default 0,
    body text not null default '',
    primary key (client_id, month)
) strict;

create table statement_price (
    partner_id integer primary key,
    currency text not null,
    prices text not null
) strict;
