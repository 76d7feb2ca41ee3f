-- +goose Up

-- The same as on PostgreSQL; see there.
alter table file add column place text not null default '';
alter table file_part add column hash blob not null default x'' check (length(hash) in (0, 32));
alter table file add column removed_at integer not null default 0;
create index file_removed on file (removed_at) where removed_at > 0;
