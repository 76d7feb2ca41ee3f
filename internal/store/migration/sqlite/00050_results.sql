-- +goose Up

-- The same as on PostgreSQL; see there.

alter table run add column steps text not null default ''; -- JSON: for each message the id of its step and its template's name, without defaults at the end; '': see content
alter table run add column rule_id integer not null default 0; -- the rule that started it; 0: none

-- Messages whose count may have changed. The transaction that changes them adds the row, and the counter deletes it.
create table result_change (
    id integer primary key,
    client_id integer not null,
    messages blob not null, -- ids as signed varints, each less the one before
    at integer not null
) strict;

-- Who counts locks this row first.
create table result_counter (
    one integer primary key check (one = 1),
    turn integer not null
) strict;
insert into result_counter (one, turn) values (1, 0);

-- What messages of a client may belong to. A row never changes, apart from told.
create table result_key (
    client_id integer not null,
    id integer not null,
    sequence_id integer not null,
    step integer not null,
    campaign_id integer not null,
    rule_id integer not null,
    session_id integer not null,
    template text not null,
    told integer not null default 0, -- what the network told about one of its messages at least: 1 delivered, 2 read
    primary key (client_id, id)
) without rowid, strict;
create unique index result_key_of on result_key (client_id, sequence_id, step, campaign_id, rule_id, session_id, template);
insert into counter (noun, next) values ('result', 0);

-- How each message is counted. A message that was moved or sent again is counted with the first one of its step, which
-- gives the row its id.
create table result_message (
    client_id integer not null,
    message_id integer not null,
    key_id integer not null,
    day integer not null, -- YYYYMMDD, when it was due
    marks integer not null, -- a bit for each count
    hour integer not null, -- when it was read: hours since Monday began; -1: not read
    words text not null, -- reason and buttons, each on a line
    generation integer not null,
    primary key (client_id, message_id)
) without rowid, strict;
create index result_message_day on result_message (client_id, day, message_id);

-- What people did after a message: decided once, when it became known.
create table result_answer (
    client_id integer not null,
    message_id integer not null,
    id integer not null, -- of the reply or the entry of consent
    kind integer not null check (kind in (1, 2)), -- 1 a reply, 2 an opt-out
    button text not null default '', -- its label
    primary key (client_id, message_id, id)
) without rowid, strict;

-- The counts of a month.
create table result_month (
    client_id integer not null,
    month integer not null, -- YYYYMM
    key_id integer not null,
    generation integer not null, -- 0: messages in the archive; else as in result_client
    counts blob not null,
    hours blob not null,
    words blob not null,
    primary key (client_id, month, key_id, generation)
) strict;

-- A client all of whose messages are counted, or being counted again. A client without a row is counted from its beginning on.
create table result_client (
    client_id integer primary key,
    generation integer not null, -- raised to count everything again
    shown integer not null, -- the generation that reports read
    place integer not null default 0, -- messages with ids up to this are counted
    state integer not null default 0 check (state between 0 and 2), -- 0 being counted, 1 counted, 2 the client was deleted
    began_at integer not null default 0
) strict;
create index result_client_open on result_client (client_id) where state <> 1;
insert into result_client (client_id, generation, shown) select k.id, 1, 1 from client k where k.deleted_at = 0 and exists (select 1 from message m where m.client_id = k.id);
