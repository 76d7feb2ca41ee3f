-- +goose Up

-- The same as on PostgreSQL; see there.

create table archive (
    one integer primary key check (one = 1),
    folder text not null, -- the identifier of the folder
    serial integer not null default 0, -- of the last file whose rows are gone from here
    done_to integer not null default 0, -- what ended before this moment is archived
    term integer not null default 0, -- raised by whoever begins to work on it
    until integer not null default 0 -- its lease ends, by the database's clock
) strict;

create table archive_place (
    client_id integer primary key,
    run_id integer not null -- runs with ids up to this were looked at; those in late_archive will be again
) strict;

create table late_archive ( -- runs that were looked at, but had not ended for long enough
    client_id integer not null,
    run_id integer not null,
    since integer not null, -- not all was ended before this moment
    primary key (client_id, run_id)
) without rowid, strict;
create index late_archive_since on late_archive (client_id, since);

-- Persons that were erased, and may still be in the archive's files.
create table archive_erasure (
    client_id integer not null,
    mark text not null, -- a keyed hash of the number
    times integer not null default 1,
    primary key (client_id, mark)
) without rowid, strict;
