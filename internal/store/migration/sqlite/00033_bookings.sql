-- +goose Up

-- The same as on PostgreSQL; see there.

alter table sequence add column booking text not null default ''; -- name of the main date field; '': an ordinary sequence
alter table sequence add column last_step integer not null default 0; -- the largest number that a step ever had as its id

create table booking (
    client_id integer not null,
    id integer not null,
    reference text not null, -- after an erasure: its keyed hash
    sequence_id integer not null,
    session_id integer not null default 0, -- 0: the sequence's
    phone text not null,
    zone text not null default '', -- '': the client's
    fields text not null, -- a JSON object
    date_at integer not null, -- the main date
    status integer not null default 0, -- 0 open, 1 confirmed, 2 cancelled, 3 arrived, 4 no_show
    status_by integer not null default 1,
    revision integer not null,
    as_of integer not null default 0,
    as_of_kind integer not null default 0, -- 0 none, 1 number, 2 time
    told_at integer not null default 0, -- the main date that the person knows, while it is another one
    moments text not null default '', -- JSON: the latest change of each kind
    created_at integer not null,
    changed_at integer not null,
    erased_at integer not null default 0,
    primary key (client_id, id)
) strict;
create unique index booking_reference on booking (client_id, reference);
create index booking_date on booking (client_id, date_at, id);
create index booking_fields on booking (date_at) where fields <> '{}';
create index booking_session on booking (client_id, session_id) where session_id <> 0;
create index booking_phone on booking (client_id, phone);
create index booking_sequence on booking (client_id, sequence_id);

-- What each occurrence of a step got. It outlives the archive, so that no key gets a second message.
create table booking_step (
    client_id integer not null,
    booking_id integer not null,
    sequence_id integer not null,
    step text not null,
    occurrence integer not null,
    phone text not null,
    message_id integer not null,
    previous_id integer not null default 0, -- the message that this one replaced
    timing text not null,
    digest text not null,
    fate integer not null default 0, -- 0 as the message, 1 withdrawn, 2 by hand
    primary key (client_id, booking_id, sequence_id, step, occurrence, phone)
) strict;
create index booking_step_message on booking_step (client_id, message_id);
create index booking_step_previous on booking_step (client_id, previous_id) where previous_id <> 0;

create table booking_change (
    client_id integer not null,
    booking_id integer not null,
    revision integer not null,
    at integer not null,
    door integer not null,
    what text not null, -- a JSON array of words
    primary key (client_id, booking_id, revision)
) strict;

-- What subscribes to every event also gets the new ones.
update webhook set types = types | 17045651456 where types & 67108862 = 67108862;
update event_stream set wanted = wanted | 17045651456 where wanted & 67108862 = 67108862;
