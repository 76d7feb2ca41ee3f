-- +goose Up

-- Grows with every change that a start could notice (see changed in package store). Nodes of the version before do not
-- raise it: beside them a start may use what was so up to a second before.
alter table client add column revision integer not null default 1;
