-- +goose Up

-- The same as on PostgreSQL; see there. SQLite cannot change a check, so the table is made anew.
create table backup_work_three (
    kind integer primary key check (kind in (1, 2, 3)),
    planned integer not null default 0,
    token integer not null default 0,
    began_at integer not null default 0,
    until integer not null default 0,
    tries integer not null default 0,
    done integer not null default 0,
    done_at integer not null default 0,
    result text not null default '',
    fault text not null default '',
    fault_at integer not null default 0,
    opener blob not null default x''
) strict;
insert into backup_work_three select * from backup_work;
drop table backup_work;
alter table backup_work_three rename to backup_work;
