-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- Which variant of its step a message is, from 1; 0: the step has none. The run itself says it in steps.
alter table result_key add column variant integer not null default 0;
drop index result_key_of;
create unique index result_key_of on result_key (client_id, sequence_id, step, campaign_id, rule_id, session_id, template, variant);
