-- +goose Up

-- The same as on PostgreSQL; see there.
create table file_storage (
    one integer primary key check (one = 1),
    marker text not null,
    placed_at integer not null default 0
) strict;
