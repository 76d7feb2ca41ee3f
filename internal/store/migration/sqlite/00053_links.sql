-- +goose Up

-- The same as on PostgreSQL; see there.
alter table client_setting add column track_links integer not null default 0;
alter table sequence add column track_links integer not null default 0;

create table link (
    client_id integer not null,
    run_id integer not null,
    step integer not null,
    n integer not null,
    code text not null,
    address text not null,
    clicked_at integer not null default 0,
    clicks integer not null default 0,
    machines integer not null default 0,
    primary key (client_id, run_id, step, n)
) without rowid, strict;
create unique index link_code on link (code) where code <> '';
