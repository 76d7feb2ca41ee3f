-- +goose Up

-- The same as on PostgreSQL; see there.

-- What protects secrets at rest: the data key, as it is or wrapped (see package auth).
create table secret (
    name text primary key,
    value blob not null
) without rowid, strict;

-- Contents that were blanked because their time was over, and persons that were erased.
alter table run add column blanked_at integer not null default 0; -- request and content are gone since; 0: never
alter table client add column blanked_to integer not null default 0; -- runs with ids below were looked at, but those in late_run
alter table client add column erased integer not null default 0 check (erased in (0, 1)); -- its blacklist may hold keyed hashes
create table late_run ( -- runs older than the time contents are kept, but not closed for as long
    client_id integer not null,
    run_id integer not null,
    primary key (client_id, run_id)
) without rowid, strict;

-- How far a session is from sending. The owner writes it; any node shows it.
alter table session add column link integer not null default 0 check (link between 0 and 4); -- 0 as created, 1 unlinked, 2 pairing, 3 linked, 4 online
alter table session add column link_at integer not null default 0; -- since when
alter table session add column number text not null default ''; -- the linked one
alter table session add column link_detail text not null default ''; -- why it is so
alter table session add column code blob not null default x''; -- sealed: what to scan or to type while pairing
alter table session add column code_until integer not null default 0;

-- Orders to the node that owns a session. Whoever gave one waits for its answer; both expire.
create table command (
    id integer primary key,
    client_id integer not null,
    session_id integer not null,
    verb text not null,
    detail blob not null default x'', -- sealed
    created_at integer not null,
    expires_at integer not null, -- of the order, then of its answer
    taken integer not null default 0, -- the node that began to carry it out
    answered_at integer not null default 0,
    answer blob not null default x'' -- sealed
) strict;
create index command_session on command (session_id) where answered_at = 0;
create index command_expires on command (expires_at);
insert into counter (noun, next) values ('command', 0);

-- Which of PostgreSQL's timelines the nodes joined in, and whether what it had accepted was on a second server, too.
alter table node add column timeline integer not null default 0; -- 0: not looked at
create table cluster (
    one integer primary key check (one = 1),
    timeline integer not null,
    synchronous integer not null check (synchronous in (0, 1)),
    since integer not null
) strict;

-- Here when the installation was exported for good: no server starts on it any more.
create table moved (
    one integer primary key check (one = 1),
    at integer not null
) strict;
