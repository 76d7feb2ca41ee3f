-- +goose Up

-- Small identifiers: one row a noun, raised in the transaction that uses the number.
create table counter (
    noun text primary key,
    next bigint not null
);
insert into counter (noun, next) values
    ('blacklist', 0), ('check', 0), ('client', 0), ('key', 0), ('login', 0), ('node', 0), ('partner', 0),
    ('sequence', 0), ('session', 0), ('template', 0);

-- Identifiers of messages and runs: nodes take blocks from one counter that never falls behind the clock.
create table id_block (
    one smallint primary key check (one = 1),
    next bigint not null
);
insert into id_block (one, next) values (1, 0);

create table partner (
    id bigint primary key,
    name text not null,
    slug text not null,
    created_at bigint not null
);
create unique index partner_slug on partner (slug) where slug <> '';

create table client (
    id bigint primary key,
    partner_id bigint not null,
    name text not null,
    email text not null,
    phone text not null,
    type text not null,
    profile text not null,
    refill text not null,
    refill_to bigint not null default 0 check (refill_to >= 0), -- credits after a refill, unless there are more
    refill_at bigint not null default 0, -- of the next one; 0: none
    credits bigint check (credits >= 0), -- less what is reserved; null: unlimited
    cap bigint check (cap >= 0), -- calls a day; null: none
    expires_on integer not null, -- YYYYMMDD; 0: never
    expires_at bigint not null, -- 0: never
    zone text not null,
    region text not null,
    suspended smallint not null default 0 check (suspended in (0, 1)),
    features text not null, -- JSON array
    closed text not null, -- JSON array of days, or null
    created_at bigint not null,
    deleted_at bigint not null default 0
) with (fillfactor = 75);
create index client_partner on client (partner_id, id);
create index client_refill on client (refill_at) where refill_at > 0;

create table login (
    id bigint primary key,
    partner_id bigint not null,
    client_id bigint not null default 0, -- 0: the partner's own
    email text not null,
    password text not null,
    created_at bigint not null,
    unique (partner_id, email)
);
create index login_client on login (client_id) where client_id <> 0;

create table api_key (
    id bigint primary key,
    partner_id bigint not null,
    client_id bigint not null default 0, -- 0: a key of the partner
    name text not null,
    prefix text not null,
    hash bytea not null unique check (length(hash) = 32),
    created_at bigint not null,
    expires_at bigint not null default 0,
    revoked_at bigint not null default 0
);
create index api_key_owner on api_key (partner_id, client_id);

create table node (
    id bigint primary key,
    lease_until bigint not null
);

create table session (
    client_id bigint not null,
    id bigint not null,
    name text not null,
    type text not null,
    sandbox smallint not null default 0 check (sandbox in (0, 1)),
    is_default smallint not null default 0 check (is_default in (0, 1)),
    per_min integer not null default 0 check (per_min >= 0),
    start_sequence bigint not null default 0,
    stop_sequence bigint not null default 0,
    created_at bigint not null,
    deleted_at bigint not null default 0,
    owner bigint not null default 0, -- the node that sends for it; 0: none
    primary key (client_id, id)
);
create index session_id on session (id);
create index session_owner on session (owner) where deleted_at = 0;
create unique index session_default on session (client_id) where is_default = 1 and deleted_at = 0;

create table sequence (
    client_id bigint not null,
    id bigint not null,
    name text not null,
    session_id bigint not null default 0, -- 0: the default session at start
    if_running text not null,
    stop_on_reply smallint not null default 0 check (stop_on_reply in (0, 1)),
    steps text not null, -- JSON array
    created_at bigint not null,
    updated_at bigint not null,
    deleted_at bigint not null default 0,
    primary key (client_id, id)
);

create table template (
    client_id bigint not null,
    id bigint not null,
    name text not null,
    text text not null,
    media text not null,
    media_name text not null,
    latitude double precision,
    longitude double precision,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (client_id, id),
    unique (client_id, name)
);

-- Text lives with the run: the message row is written several times, and each time as a whole.
create table run (
    client_id bigint not null,
    id bigint not null, -- of its first message; the others follow without gaps
    sequence_id bigint not null,
    session_id bigint not null,
    phone text not null,
    origin smallint not null check (origin between 1 and 4),
    messages smallint not null check (messages > 0),
    name text not null,
    zone text not null,
    received_at bigint not null,
    request bytea not null,
    client_name text not null,
    sequence_name text not null,
    content text not null, -- JSON array of frozen steps
    primary key (client_id, id)
);
create index run_recipient on run (client_id, phone, sequence_id);

create table message (
    client_id bigint not null,
    id bigint not null,
    session_id bigint not null,
    run_id bigint not null,
    desired_at bigint not null, -- 0: none wished
    due_at bigint not null, -- the promise, never moved
    next_at bigint not null, -- the queue
    valid_until bigint not null,
    intent bigint not null default 0, -- 0 open, > 0 the attempt's token, -1 closed
    intent_at bigint not null default 0, -- of the first attempt whose answer is still out, else of the last one
    done_at bigint,
    resent_from bigint not null default 0,
    step smallint not null,
    origin smallint not null check (origin between 1 and 4),
    attempt integer not null default 0 check (attempt >= 0),
    repeats smallint not null default 0 check (repeats >= 0),
    generation smallint not null default 0,
    state smallint not null default 0,
    outcome smallint not null default 0, -- 0 none, 1 sent, 2 failed; survives a re-send
    credit smallint not null default 0 check (credit between -1 and 1), -- 1 reserved or spent, -1 given back
    phone text not null,
    reason text not null default '',
    detail text not null default '',
    primary key (client_id, id),
    check (intent >= -1),
    check ((intent = -1) = (state <> 0)),
    check ((state = 0) = (done_at is null)),
    check (intent <= 0 or intent_at > 0),
    check (state in (0, 3) and outcome = 0 or state = 1 and outcome = 1 or state in (2, 4) and outcome = 2 or state = 5 and outcome between 0 and 2)
) with (fillfactor = 50); -- a claim's new row must find room beside the old one: at 75 two of three go elsewhere, and twice as slow
create index message_open on message (session_id, next_at, id) where state = 0;
create index message_done on message (client_id, done_at, id) where outcome <> 0;
create index message_resent on message (client_id, run_id) where resent_from <> 0;

create table api_usage (
    client_id bigint not null,
    day integer not null, -- YYYYMMDD in the client's zone
    cap bigint,
    asked bigint not null, -- by the last statement
    prev bigint not null, -- used before it
    used bigint not null check (used >= 0),
    primary key (client_id, day)
) with (fillfactor = 50);

create table idempotency (
    client_id bigint not null,
    scope text not null,
    key text not null,
    hash text not null,
    at bigint not null,
    result bytea not null default '', -- what the caller gets again
    primary key (client_id, scope, key)
);
create index idempotency_at on idempotency (at);

create table credit_entry (
    id bigint generated always as identity primary key,
    client_id bigint not null,
    at bigint not null,
    kind text not null,
    amount bigint not null
);
create index credit_entry_client on credit_entry (client_id, id);

create table blacklist (
    client_id bigint not null,
    phone text not null,
    id bigint not null,
    reason text not null,
    added_at bigint not null,
    primary key (client_id, phone)
);
-- For lists only: a claim, which names no id, must look numbers up by the key whatever the statistics say.
create unique index blacklist_id on blacklist (client_id, id) where id > 0;

-- Only what is not normal.
create table event (
    id bigint generated always as identity primary key,
    client_id bigint not null,
    message_id bigint not null,
    at bigint not null,
    kind text not null,
    detail text not null
);
create index event_message on event (client_id, message_id, id);

create table sandbox_message (
    seq bigint generated always as identity,
    client_id bigint not null,
    message_id bigint not null,
    connector_id text not null,
    phone text not null,
    content text not null, -- JSON
    received_at bigint not null,
    copies integer not null default 1,
    primary key (client_id, seq)
);
create unique index sandbox_connector on sandbox_message (client_id, connector_id);
