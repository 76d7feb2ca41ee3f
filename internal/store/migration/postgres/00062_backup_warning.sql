-- +goose Up

-- 3 is the warning to the operator that the last good backup, or its rehearsal, is too old.
alter table backup_work drop constraint backup_work_kind_check;
alter table backup_work add constraint backup_work_kind_check check (kind in (1, 2, 3));
