-- +goose Up

-- The same as on PostgreSQL; see there.

-- The caller's own name for what it started; '': none.
alter table run add column reference text not null default '';
create index run_reference on run (client_id, reference) where reference <> '';

-- A client of which somebody wants events. Transactions that write facts only read this row; its numberer locks it.
create table event_stream (
    client_id integer primary key,
    wanted integer not null default 0, -- a bit for each type that a webhook of the client or of its partner wants
    feed_until integer not null default 0, -- when the feed goes off, unless it is read; 0: it is off
    last_seq integer not null default 0 -- the last number that an event got
) without rowid, strict;

-- Facts as their transactions wrote them, until a numberer makes events of them.
create table outbox_fact (
    client_id integer not null,
    id integer primary key,
    type integer not null,
    subject integer not null, -- the id of the message, reply, consent entry, session, campaign, template or webhook; 0: the account
    detail text not null default '', -- JSON object of what the subject's row does not tell
    at integer not null
) strict;

-- Events, numbered for each client without repetition.
create table outbox_event (
    client_id integer not null,
    seq integer not null,
    type integer not null,
    subject integer not null,
    detail text not null default '',
    at integer not null,
    primary key (client_id, seq)
) without rowid, strict;
create index outbox_event_subject on outbox_event (client_id, subject, type); -- for what an erasure forgets

create table webhook (
    id integer primary key,
    partner_id integer not null,
    client_id integer not null, -- 0: the partner's, for all its clients
    url text not null,
    types integer not null, -- a bit for each type that it wants
    session_id integer not null default 0, -- only events of this session; 0: all
    description text not null default '',
    active integer not null default 1 check (active in (0, 1)),
    disabled_at integer not null default 0, -- when it was disabled for its failures; 0: it was not
    reason text not null default '', -- why
    created_at integer not null,
    succeeded_at integer not null default 0, -- the last success; 0: none yet
    failing_at integer not null default 0, -- the first failure since; 0: it does not fail
    secret blob not null, -- sealed
    secret_before blob not null, -- signs too until secret_until; empty: there is none
    secret_until integer not null default 0,
    owner integer not null default 0 -- the node that sends for it; 0: none
) without rowid, strict;
create index webhook_account on webhook (client_id, partner_id);
create index webhook_owner on webhook (owner) where owner <> 0;

-- An event on its way to a webhook.
create table delivery (
    webhook_id integer not null,
    at integer not null, -- of the event
    client_id integer not null,
    seq integer not null,
    type integer not null,
    state integer not null default 0 check (state between 0 and 2), -- 0 waiting, 1 delivered, 2 failed
    attempts integer not null default 0 check (attempts >= 0),
    next_at integer not null, -- the next attempt, while it waits
    tried_at integer not null default 0, -- the last attempt; 0: none yet
    status integer not null default 0, -- of the last answer; 0: there was none
    took integer not null default 0, -- microseconds
    answer text not null default '', -- the beginning of the last answer, or why there was none
    primary key (webhook_id, at, client_id, seq)
) without rowid, strict;
create index delivery_due on delivery (webhook_id, next_at, client_id, seq) where state = 0;

insert into counter (noun, next) values ('webhook', 0);
