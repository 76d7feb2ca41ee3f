-- +goose Up

-- The same as on PostgreSQL; see there. A column cannot be added only where it is missing, so the table is made anew.
create table late_run_whole (
    client_id integer not null,
    run_id integer not null,
    since integer not null, -- not all was ended before this moment: no use looking while contents of that time are kept
    primary key (client_id, run_id)
) without rowid, strict;
insert into late_run_whole (client_id, run_id, since) select client_id, run_id, 0 from late_run;
drop table late_run;
alter table late_run_whole rename to late_run;
create index late_run_since on late_run (since);
insert into counter (noun, next) values ('erasure', 0) on conflict do nothing;
