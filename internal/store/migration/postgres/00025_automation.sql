-- +goose Up

-- Nodes of the version before may run meanwhile. What they do triggers nothing.
set local lock_timeout = '2s';

-- How often automations triggered each other until this run: the depth of its trigger, and one more. 0: no automation started it.
alter table run add column depth smallint not null default 0;
-- How many starts and sends of automations a person may get in 24 hours.
alter table client_setting add column automated_most integer not null default 5 check (automated_most >= 0);

-- A rule of a client.
create table automation (
    client_id bigint not null,
    id bigint not null,
    name text not null,
    active smallint not null check (active in (0, 1)),
    kind smallint not null, -- of its trigger: 1 reply, 2 reply_to, 3 no_reply, 4 date, 5 hook, 6 outcome
    sequence_id bigint not null default 0, -- that the trigger names
    wants bigint not null, -- a bit for each kind of fact that may trigger it
    trigger_text text not null, -- JSON
    conditions text not null, -- JSON
    actions text not null, -- JSON
    stamp bigint not null, -- grows with each change
    created_at bigint not null,
    updated_at bigint not null,
    armed_at bigint not null, -- since when it is active; older facts do not trigger it
    fired bigint not null default 0, -- how often it acted
    fired_at bigint not null default 0, -- the last time; 0: never
    scanned_to bigint not null default 0, -- of a date rule: the last contact whose date was read; the biggest number: all were
    secret text not null default '', -- of a hook: the hash of its address, in hexadecimal digits
    sealed bytea, -- of a hook: the address for its owner
    payload bytea, -- of a hook: the last one; null: none yet, or removed
    payload_form smallint not null default 0, -- 1: the payload is a form
    payload_phone text not null default '', -- of the person in the payload
    payload_at bigint not null default 0, -- when the hook was called last
    primary key (client_id, id)
) with (fillfactor = 75);
create unique index automation_secret on automation (secret) where secret <> '';
create index automation_sequence on automation (client_id, sequence_id, wants) where active = 1 and sequence_id <> 0;
create index automation_kind on automation (kind, active);

-- What the active rules of a client want. Facts read this row. Transactions that act lock it.
create table automation_client (
    client_id bigint primary key,
    wanted bigint not null, -- a bit for each kind of fact
    since bigint not null default 0 -- facts before this moment are missed: a failover or a restore may hide what they did
) with (fillfactor = 50);

-- A fact that may trigger rules. The transaction that acts deletes the row.
create table automation_trigger (
    id bigint generated always as identity primary key,
    client_id bigint not null,
    kind smallint not null, -- as event types; 40 a contact changed, 41 a hook was called
    subject bigint not null, -- a reply, a message, a contact or a rule
    phone text not null default '', -- of a hook's call, or of a contact that is gone
    detail text not null default '', -- JSON of a hook's fields
    occurrence text not null default '', -- of a hook's call
    at bigint not null,
    next_at bigint not null -- nobody takes it before
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create index automation_trigger_due on automation_trigger (next_at, id);
create index automation_trigger_phone on automation_trigger (client_id, phone) where phone <> '';

-- When somebody who was written to counts as silent.
create table automation_timer (
    client_id bigint not null,
    rule_id bigint not null,
    run_id bigint not null,
    phone text not null,
    since bigint not null, -- when the run's last message was completed
    due_at bigint not null,
    primary key (client_id, rule_id, run_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create index automation_timer_due on automation_timer (due_at);
create index automation_timer_phone on automation_timer (client_id, phone);

-- A contact's date that a rule waits for.
create table automation_date (
    client_id bigint not null,
    rule_id bigint not null,
    person_id bigint not null,
    value text not null, -- of the contact's field
    version bigint not null, -- grows with each change of the value
    since bigint not null, -- when the value became known to the rule
    day integer not null, -- the next day that is not planned yet, such as 20261125; 99999999: none comes
    run_id bigint not null default 0, -- the last run that was started for the date; 0: none
    primary key (client_id, rule_id, person_id)
) with (fillfactor = 75);
create index automation_date_day on automation_date (client_id, rule_id, day);
create index automation_date_person on automation_date (client_id, person_id);

-- A rule acts once for a person and an occurrence.
create table automation_occurrence (
    client_id bigint not null,
    rule_id bigint not null,
    phone text not null,
    occurrence text not null,
    keep_until bigint not null,
    primary key (client_id, rule_id, phone, occurrence)
);
create index automation_occurrence_phone on automation_occurrence (client_id, phone);
create index automation_occurrence_until on automation_occurrence (keep_until);

-- The log of rules.
create table automation_firing (
    client_id bigint not null,
    id bigint generated always as identity,
    rule_id bigint not null,
    phone text not null, -- '' once the person was erased
    at bigint not null,
    occurrence text not null,
    acted smallint not null check (acted in (0, 1)),
    reached smallint not null default 0, -- starts and sends
    reason text not null default '', -- why it did not act, or left something out
    detail text not null default '',
    depth smallint not null default 0,
    messages text not null default '', -- JSON: the first message of each start and send
    primary key (client_id, id)
);
create index automation_firing_rule on automation_firing (client_id, rule_id, id);
create index automation_firing_phone on automation_firing (client_id, phone, at);
create index automation_firing_at on automation_firing (at);

insert into counter (noun, next) values ('automation', 0);
