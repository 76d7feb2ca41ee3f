-- +goose Up

-- Nodes of the version before may run meanwhile. What they do is not told to anybody.
set local lock_timeout = '2s';

-- The caller's own name for what it started; '': none.
alter table run add column reference text not null default '';
create index run_reference on run (client_id, reference) where reference <> '';

-- A client of which somebody wants events. Transactions that write facts only read this row; its numberer locks it.
create table event_stream (
    client_id bigint primary key,
    wanted bigint not null default 0, -- a bit for each type that a webhook of the client or of its partner wants
    feed_until bigint not null default 0, -- when the feed goes off, unless it is read; 0: it is off
    last_seq bigint not null default 0 -- the last number that an event got
) with (fillfactor = 50);

-- Facts as their transactions wrote them, until a numberer makes events of them.
create table outbox_fact (
    client_id bigint not null,
    id bigint generated always as identity,
    type smallint not null,
    subject bigint not null, -- the id of the message, reply, consent entry, session, campaign, template or webhook; 0: the account
    detail text not null default '', -- JSON object of what the subject's row does not tell
    at bigint not null,
    primary key (client_id, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Events, numbered for each client without repetition.
create table outbox_event (
    client_id bigint not null,
    seq bigint not null,
    type smallint not null,
    subject bigint not null,
    detail text not null default '',
    at bigint not null,
    primary key (client_id, seq)
);
create index outbox_event_subject on outbox_event (client_id, subject, type); -- for what an erasure forgets

create table webhook (
    id bigint primary key,
    partner_id bigint not null,
    client_id bigint not null, -- 0: the partner's, for all its clients
    url text not null,
    types bigint not null, -- a bit for each type that it wants
    session_id bigint not null default 0, -- only events of this session; 0: all
    description text not null default '',
    active smallint not null default 1 check (active in (0, 1)),
    disabled_at bigint not null default 0, -- when it was disabled for its failures; 0: it was not
    reason text not null default '', -- why
    created_at bigint not null,
    succeeded_at bigint not null default 0, -- the last success; 0: none yet
    failing_at bigint not null default 0, -- the first failure since; 0: it does not fail
    secret bytea not null, -- sealed
    secret_before bytea not null, -- signs too until secret_until; empty: there is none
    secret_until bigint not null default 0,
    owner bigint not null default 0 -- the node that sends for it; 0: none
) with (fillfactor = 75);
create index webhook_account on webhook (client_id, partner_id);
create index webhook_owner on webhook (owner) where owner <> 0;

-- An event on its way to a webhook.
create table delivery (
    webhook_id bigint not null,
    at bigint not null, -- of the event
    client_id bigint not null,
    seq bigint not null,
    type smallint not null,
    state smallint not null default 0 check (state between 0 and 2), -- 0 waiting, 1 delivered, 2 failed
    attempts integer not null default 0 check (attempts >= 0),
    next_at bigint not null, -- the next attempt, while it waits
    tried_at bigint not null default 0, -- the last attempt; 0: none yet
    status integer not null default 0, -- of the last answer; 0: there was none
    took bigint not null default 0, -- microseconds
    answer text not null default '', -- the beginning of the last answer, or why there was none
    primary key (webhook_id, at, client_id, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
create index delivery_due on delivery (webhook_id, next_at, client_id, seq) where state = 0;

insert into counter (noun, next) values ('webhook', 0);
