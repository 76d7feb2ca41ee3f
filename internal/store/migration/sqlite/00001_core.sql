-- +goose Up

-- The same tables as on PostgreSQL, with two differences. A single integer key is the table itself here, so rows that
-- PostgreSQL keys by (client_id, id) are keyed by id, which is unique across clients; statements still name both. Every
-- index ends in that key without saying so, and therefore keeps the order of ids.

-- Marks the file as ours: "PUNT".
pragma application_id = 1347767892;

-- Small identifiers: one row a noun, raised in the transaction that uses the number.
create table counter (
    noun text primary key,
    next integer not null
) without rowid, strict;
insert into counter (noun, next) values
    ('blacklist', 0), ('check', 0), ('client', 0), ('key', 0), ('login', 0), ('node', 0), ('partner', 0),
    ('sequence', 0), ('session', 0), ('template', 0);

-- Identifiers of messages and runs: nodes take blocks from one counter that never falls behind the clock.
create table id_block (
    one integer primary key check (one = 1),
    next integer not null
) strict;
insert into id_block (one, next) values (1, 0);

create table partner (
    id integer primary key,
    name text not null,
    slug text not null,
    created_at integer not null
) strict;
create unique index partner_slug on partner (slug) where slug <> '';

create table client (
    id integer primary key,
    partner_id integer not null,
    name text not null,
    email text not null,
    phone text not null,
    type text not null,
    profile text not null,
    refill text not null,
    refill_to integer not null default 0 check (refill_to >= 0), -- credits after a refill, unless there are more
    refill_at integer not null default 0, -- of the next one; 0: none
    credits integer check (credits >= 0), -- less what is reserved; null: unlimited
    cap integer check (cap >= 0), -- calls a day; null: none
    expires_on integer not null, -- YYYYMMDD; 0: never
    expires_at integer not null, -- 0: never
    zone text not null,
    region text not null,
    suspended integer not null default 0 check (suspended in (0, 1)),
    features text not null, -- JSON array
    closed text not null, -- JSON array of days, or null
    created_at integer not null,
    deleted_at integer not null default 0
) strict;
create index client_partner on client (partner_id);
create index client_refill on client (refill_at) where refill_at > 0;

create table login (
    id integer primary key,
    partner_id integer not null,
    client_id integer not null default 0, -- 0: the partner's own
    email text not null,
    password text not null,
    created_at integer not null,
    unique (partner_id, email)
) strict;
create index login_client on login (client_id) where client_id <> 0;

create table api_key (
    id integer primary key,
    partner_id integer not null,
    client_id integer not null default 0, -- 0: a key of the partner
    name text not null,
    prefix text not null,
    hash blob not null unique check (length(hash) = 32),
    created_at integer not null,
    expires_at integer not null default 0,
    revoked_at integer not null default 0
) strict;
create index api_key_owner on api_key (partner_id, client_id);

create table node (
    id integer primary key,
    lease_until integer not null
) strict;

create table session (
    client_id integer not null,
    id integer primary key,
    name text not null,
    type text not null,
    sandbox integer not null default 0 check (sandbox in (0, 1)),
    is_default integer not null default 0 check (is_default in (0, 1)),
    per_min integer not null default 0 check (per_min >= 0),
    start_sequence integer not null default 0,
    stop_sequence integer not null default 0,
    created_at integer not null,
    deleted_at integer not null default 0,
    owner integer not null default 0 -- the node that sends for it; 0: none
) strict;
create index session_client on session (client_id);
create index session_owner on session (owner) where deleted_at = 0;
create unique index session_default on session (client_id) where is_default = 1 and deleted_at = 0;

create table sequence (
    client_id integer not null,
    id integer primary key,
    name text not null,
    session_id integer not null default 0, -- 0: the default session at start
    if_running text not null,
    stop_on_reply integer not null default 0 check (stop_on_reply in (0, 1)),
    steps text not null, -- JSON array
    created_at integer not null,
    updated_at integer not null,
    deleted_at integer not null default 0
) strict;
create index sequence_client on sequence (client_id);

create table template (
    client_id integer not null,
    id integer primary key,
    name text not null,
    text text not null,
    media text not null,
    media_name text not null,
    latitude real,
    longitude real,
    created_at integer not null,
    updated_at integer not null,
    unique (client_id, name)
) strict;

-- Text lives with the run: the message row is written several times, and each time as a whole.
create table run (
    client_id integer not null,
    id integer primary key, -- of its first message; the others follow without gaps
    sequence_id integer not null,
    session_id integer not null,
    phone text not null,
    origin integer not null check (origin between 1 and 4),
    messages integer not null check (messages > 0),
    name text not null,
    zone text not null,
    received_at integer not null,
    request blob not null,
    client_name text not null,
    sequence_name text not null,
    content text not null -- JSON array of frozen steps
) strict;
create index run_recipient on run (client_id, phone, sequence_id);
create index run_client on run (client_id); -- for lists, newest first

create table message (
    client_id integer not null,
    id integer primary key,
    session_id integer not null,
    run_id integer not null,
    desired_at integer not null, -- 0: none wished
    due_at integer not null, -- the promise, never moved
    next_at integer not null, -- the queue
    valid_until integer not null,
    intent integer not null default 0, -- 0 open, > 0 the attempt's token, -1 closed
    intent_at integer not null default 0, -- of the first attempt whose answer is still out, else of the last one
    done_at integer,
    resent_from integer not null default 0,
    step integer not null,
    origin integer not null check (origin between 1 and 4),
    attempt integer not null default 0 check (attempt >= 0),
    repeats integer not null default 0 check (repeats >= 0),
    generation integer not null default 0,
    state integer not null default 0,
    outcome integer not null default 0, -- 0 none, 1 sent, 2 failed; survives a re-send
    credit integer not null default 0 check (credit between -1 and 1), -- 1 reserved or spent, -1 given back
    phone text not null,
    reason text not null default '',
    detail text not null default '',
    check (intent >= -1),
    check ((intent = -1) = (state <> 0)),
    check ((state = 0) = (done_at is null)),
    check (intent <= 0 or intent_at > 0),
    check (state in (0, 3) and outcome = 0 or state = 1 and outcome = 1 or state in (2, 4) and outcome = 2 or state = 5 and outcome between 0 and 2)
) strict;
create index message_open on message (session_id, next_at) where state = 0;
create index message_done on message (client_id, done_at) where outcome <> 0;
create index message_resent on message (client_id, run_id) where resent_from <> 0;

create table api_usage (
    client_id integer not null,
    day integer not null, -- YYYYMMDD in the client's zone
    cap integer,
    asked integer not null, -- by the last statement
    prev integer not null, -- used before it
    used integer not null check (used >= 0),
    primary key (client_id, day)
) without rowid, strict;

create table idempotency (
    client_id integer not null,
    scope text not null,
    key text not null,
    hash text not null,
    at integer not null,
    result blob not null default x'', -- what the caller gets again
    primary key (client_id, scope, key)
) without rowid, strict;
create index idempotency_at on idempotency (at);

create table credit_entry (
    id integer primary key,
    client_id integer not null,
    at integer not null,
    kind text not null,
    amount integer not null
) strict;
create index credit_entry_client on credit_entry (client_id);

create table blacklist (
    client_id integer not null,
    phone text not null,
    id integer not null,
    reason text not null,
    added_at integer not null,
    primary key (client_id, phone)
) without rowid, strict;
-- For lists only: a claim, which names no id, must look numbers up by the key whatever the statistics say.
create unique index blacklist_id on blacklist (client_id, id) where id > 0;

-- Only what is not normal.
create table event (
    id integer primary key,
    client_id integer not null,
    message_id integer not null,
    at integer not null,
    kind text not null,
    detail text not null
) strict;
create index event_message on event (client_id, message_id);

create table sandbox_message (
    seq integer primary key,
    client_id integer not null,
    message_id integer not null,
    connector_id text not null,
    phone text not null,
    content text not null, -- JSON
    received_at integer not null,
    copies integer not null default 1,
    check (copies > 0)
) strict;
create index sandbox_client on sandbox_message (client_id);
create unique index sandbox_connector on sandbox_message (client_id, connector_id);
