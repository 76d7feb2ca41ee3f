-- +goose Up

-- Every step here is one that nodes of the version before may live through: columns with defaults, new tables, no
-- rewrite of a big table. A table that is busy must not make others queue behind us; the step is tried again. (Longer
-- than the second after which a vacuum that is in the way gives way.)
set local lock_timeout = '2s';

-- What protects secrets at rest: the data key, as it is or wrapped (see package auth).
create table secret (
    name text primary key,
    value bytea not null
);

-- Contents that were blanked because their time was over, and persons that were erased.
alter table run add column blanked_at bigint not null default 0; -- request and content are gone since; 0: never
alter table client add column blanked_to bigint not null default 0; -- runs with ids below were looked at, but those in late_run
alter table client add column erased smallint not null default 0 check (erased in (0, 1)); -- its blacklist may hold keyed hashes
create table late_run ( -- runs older than the time contents are kept, but not closed for as long
    client_id bigint not null,
    run_id bigint not null,
    primary key (client_id, run_id)
);

-- How far a session is from sending. The owner writes it; any node shows it.
alter table session add column link smallint not null default 0 check (link between 0 and 4); -- 0 as created, 1 unlinked, 2 pairing, 3 linked, 4 online
alter table session add column link_at bigint not null default 0; -- since when
alter table session add column number text not null default ''; -- the linked one
alter table session add column link_detail text not null default ''; -- why it is so
alter table session add column code bytea not null default ''; -- sealed: what to scan or to type while pairing
alter table session add column code_until bigint not null default 0;

-- Orders to the node that owns a session. Whoever gave one waits for its answer; both expire.
create table command (
    id bigint primary key,
    client_id bigint not null,
    session_id bigint not null,
    verb text not null,
    detail bytea not null default '', -- sealed
    created_at bigint not null,
    expires_at bigint not null, -- of the order, then of its answer
    taken bigint not null default 0, -- the node that began to carry it out
    answered_at bigint not null default 0,
    answer bytea not null default '' -- sealed
);
create index command_session on command (session_id, id) where answered_at = 0;
create index command_expires on command (expires_at);
insert into counter (noun, next) values ('command', 0);

-- Which of PostgreSQL's timelines the nodes joined in, and whether what it had accepted was on a second server, too.
alter table node add column timeline bigint not null default 0; -- 0: not looked at
create table cluster (
    one smallint primary key check (one = 1),
    timeline bigint not null,
    synchronous smallint not null check (synchronous in (0, 1)),
    since bigint not null
);

-- Here when the installation was exported for good: no server starts on it any more.
create table moved (
    one smallint primary key check (one = 1),
    at bigint not null
);
