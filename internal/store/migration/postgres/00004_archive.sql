-- +goose Up

-- As in the steps before: nodes of the version before may live through all of this.
set local lock_timeout = '2s';

-- Where old runs go, how far that is done, and who does it.
create table archive (
    one smallint primary key check (one = 1),
    folder text not null, -- the identifier of the folder
    serial bigint not null default 0, -- of the last file whose rows are gone from here
    done_to bigint not null default 0, -- what ended before this moment is archived
    term bigint not null default 0, -- raised by whoever begins to work on it
    until bigint not null default 0 -- its lease ends, by the database's clock
);

-- How far each client's runs were looked at. (In the client's own row it would meet its credits.)
create table archive_place (
    client_id bigint primary key,
    run_id bigint not null -- runs with ids up to this were looked at; those in late_archive will be again
);

create table late_archive ( -- runs that were looked at, but had not ended for long enough
    client_id bigint not null,
    run_id bigint not null,
    since bigint not null, -- not all was ended before this moment
    primary key (client_id, run_id)
);
create index late_archive_since on late_archive (client_id, since);

-- Persons that were erased, and may still be in the archive's files.
create table archive_erasure (
    client_id bigint not null,
    mark text not null, -- a keyed hash of the number
    times bigint not null default 1,
    primary key (client_id, mark)
);
