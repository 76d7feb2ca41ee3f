-- +goose Up

-- The same as on PostgreSQL; see there.

-- How often automations triggered each other until this run: the depth of its trigger, and one more. 0: no automation started it.
alter table run add column depth integer not null default 0;
-- How many starts and sends of automations a person may get in 24 hours.
alter table client_setting add column automated_most integer not null default 5 check (automated_most >= 0);

-- A rule of a client.
create table automation (
    client_id integer not null,
    id integer not null,
    name text not null,
    active integer not null check (active in (0, 1)),
    kind integer not null, -- of its trigger: 1 reply, 2 reply_to, 3 no_reply, 4 date, 5 hook, 6 outcome
    sequence_id integer not null default 0, -- that the trigger names
    wants integer not null, -- a bit for each kind of fact that may trigger it
    trigger_text text not null, -- JSON
    conditions text not null, -- JSON
    actions text not null, -- JSON
    stamp integer not null, -- grows with each change
    created_at integer not null,
    updated_at integer not null,
    armed_at integer not null, -- since when it is active; older facts do not trigger it
    fired integer not null default 0, -- how often it acted
    fired_at integer not null default 0, -- the last time; 0: never
    scanned_to integer not null default 0, -- of a date rule: the last contact whose date was read; the biggest number: all were
    secret text not null default '', -- of a hook: the hash of its address, in hexadecimal digits
    sealed blob, -- of a hook: the address for its owner
    payload blob, -- of a hook: the last one; null: none yet, or removed
    payload_form integer not null default 0, -- 1: the payload is a form
    payload_phone text not null default '', -- of the person in the payload
    payload_at integer not null default 0, -- when the hook was called last
    primary key (client_id, id)
) without rowid, strict;
create unique index automation_secret on automation (secret) where secret <> '';
create index automation_sequence on automation (client_id, sequence_id, wants) where active = 1 and sequence_id <> 0;
create index automation_kind on automation (kind, active);

-- What the active rules of a client want. Facts read this row. Transactions that act lock it.
create table automation_client (
    client_id integer primary key,
    wanted integer not null, -- a bit for each kind of fact
    since integer not null default 0 -- facts before this moment are missed: a failover or a restore may hide what they did
) without rowid, strict;

-- A fact that may trigger rules. The transaction that acts deletes the row.
create table automation_trigger (
    id integer primary key,
    client_id integer not null,
    kind integer not null, -- as event types; 40 a contact changed, 41 a hook was called
    subject integer not null, -- a reply, a message, a contact or a rule
    phone text not null default '', -- of a hook's call, or of a contact that is gone
    detail text not null default '', -- JSON of a hook's fields
    occurrence text not null default '', -- of a hook's call
    at integer not null,
    next_at integer not null -- nobody takes it before
) strict;
create index automation_trigger_due on automation_trigger (next_at, id);
create index automation_trigger_phone on automation_trigger (client_id, phone) where phone <> '';

-- When somebody who was written to counts as silent.
create table automation_timer (
    client_id integer not null,
    rule_id integer not null,
    run_id integer not null,
    phone text not null,
    since integer not null, -- when the run's last message was completed
    due_at integer not null,
    primary key (client_id, rule_id, run_id)
) without rowid, strict;
create index automation_timer_due on automation_timer (due_at);
create index automation_timer_phone on automation_timer (client_id, phone);

-- A contact's date that a rule waits for.
create table automation_date (
    client_id integer not null,
    rule_id integer not null,
    person_id integer not null,
    value text not null, -- of the contact's field
    version integer not null, -- grows with each change of the value
    since integer not null, -- when the value became known to the rule
    day integer not null, -- the next day that is not planned yet, such as 20261125; 99999999: none comes
    run_id integer not null default 0, -- the last run that was started for the date; 0: none
    primary key (client_id, rule_id, person_id)
) without rowid, strict;
create index automation_date_day on automation_date (client_id, rule_id, day);
create index automation_date_person on automation_date (client_id, person_id);

-- A rule acts once for a person and an occurrence.
create table automation_occurrence (
    client_id integer not null,
    rule_id integer not null,
    phone text not null,
    occurrence text not null,
    keep_until integer not null,
    primary key (client_id, rule_id, phone, occurrence)
) without rowid, strict;
create index automation_occurrence_phone on automation_occurrence (client_id, phone);
create index automation_occurrence_until on automation_occurrence (keep_until);

-- The log of rules.
create table automation_firing (
    client_id integer not null,
    id integer primary key,
    rule_id integer not null,
    phone text not null, -- '' once the person was erased
    at integer not null,
    occurrence text not null,
    acted integer not null check (acted in (0, 1)),
    reached integer not null default 0, -- starts and sends
    reason text not null default '', -- why it did not act, or left something out
    detail text not null default '',
    depth integer not null default 0,
    messages text not null default '' -- JSON: the first message of each start and send
) strict;
create index automation_firing_rule on automation_firing (client_id, rule_id, id);
create index automation_firing_phone on automation_firing (client_id, phone, at);
create index automation_firing_at on automation_firing (at);

insert into counter (noun, next) values ('automation', 0);
