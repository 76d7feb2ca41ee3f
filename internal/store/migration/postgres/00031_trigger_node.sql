-- +goose Up

-- A trigger that a dead node took is free at once. A trigger that fails again and again is set aside.
alter table automation_trigger add column node bigint not null default 0; -- the node that took it; 0: none
alter table automation_trigger add column attempts integer not null default 0; -- failed ones
create index automation_trigger_node on automation_trigger (node) where node <> 0;
