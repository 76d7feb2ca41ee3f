-- +goose Up

-- The work on backups by schedule, a row for each kind. One node at a time has an attempt; the token names it.
create table backup_work (
    kind smallint primary key check (kind in (1, 2)), -- 1 the backup, 2 its rehearsal
    planned bigint not null default 0, -- the planned moment of the last attempt
    token bigint not null default 0, -- grows with each attempt: whoever lost its attempt notices it here
    began_at bigint not null default 0,
    until bigint not null default 0, -- no other attempt begins before: the deadline of the running one, or the end of the wait after a failure
    tries integer not null default 0, -- failed attempts for this planned moment
    done bigint not null default 0, -- the planned moment of the last success
    done_at bigint not null default 0,
    result text not null default '', -- what the last success made
    fault text not null default '', -- why the last attempt failed; empty after a success
    fault_at bigint not null default 0,
    opener bytea not null default '' -- sealed: what opens the newest encrypted backup, until it is rehearsed
);
