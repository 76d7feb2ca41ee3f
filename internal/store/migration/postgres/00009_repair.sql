-- +goose Up

-- Step 2 was changed after some databases had run it (commit 618c0ec): they lack a column, an index and a counter. The
-- rows that are there are looked at again; in a database that lacks nothing this changes nothing that matters.
set local lock_timeout = '2s';
alter table late_run add column if not exists since bigint not null default 0;
alter table late_run alter column since drop default;
create index if not exists late_run_since on late_run (since);
insert into counter (noun, next) values ('erasure', 0) on conflict do nothing;
