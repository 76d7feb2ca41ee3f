-- +goose Up

-- The same as on PostgreSQL; see there.
alter table result_key add column variant integer not null default 0;
drop index result_key_of;
create unique index result_key_of on result_key (client_id, sequence_id, step, campaign_id, rule_id, session_id, template, variant);
