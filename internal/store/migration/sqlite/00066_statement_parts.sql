-- +goose Up

-- The same as on PostgreSQL; see there.
create table statement_part (
    month integer not null,
    client_id integer not null,
    counted_to integer not null,
    n integer not null,
    line text not null,
    messages blob not null,
    primary key (month, client_id, counted_to, n)
) strict;
