-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- Recipients of the holdout, who get nothing. They are not among the refused ones.
alter table campaign_feed add column held_out bigint not null default 0;
