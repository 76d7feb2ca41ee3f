-- +goose Up

-- Feeds of appointments, and what was read in them.

create table calendar (
    client_id integer not null,
    id integer not null,
    name text not null,
    host text not null, -- of the address
    address blob not null, -- sealed
    sequence_id integer not null,
    sources text not null, -- JSON: the parts of an entry that are searched for a phone number, in order
    all_day integer not null default 0,
    created_at integer not null,
    started_at integer not null default 0, -- 0: nothing is planned yet
    reading integer not null default 0, -- number of the latest reading that began, or of the latest change by a person
    owner integer not null default 0, -- the node that reads it now; 0: none
    next_at integer not null, -- when it is read next
    tried_at integer not null default 0,
    read_at integer not null default 0, -- the latest good reading
    etag text not null default '',
    modified text not null default '',
    digest text not null default '', -- of what the latest good reading said
    failures integer not null default 0,
    fault text not null default '', -- why the latest reading was bad
    told integer not null default 0, -- people know that it cannot be read
    asked integer not null default 0, -- so many entries are gone that a person must decide
    cancels integer not null default 0, -- so many may be cancelled at once, because a person decided so
    entries integer not null default 0,
    understood integer not null default 0,
    primary key (client_id, id)
) strict;
create index calendar_next on calendar (next_at);
create index calendar_owner on calendar (owner) where owner <> 0;

create table calendar_entry (
    client_id integer not null,
    calendar_id integer not null,
    reference text not null, -- of the booking
    start_at integer not null,
    all_day integer not null default 0,
    title text not null default '',
    place text not null default '',
    phone text not null default '',
    name text not null default '',
    cancelled integer not null default 0,
    problem text not null default '', -- why it is no appointment
    warning text not null default '',
    digest text not null default '',
    applied text not null default '', -- the digest that the booking got last; '': there is no booking
    withdrawn integer not null default 0, -- the booking was cancelled
    missing integer not null default 0, -- so many readings agree that it is gone
    refused text not null default '', -- why the booking could not be changed
    primary key (client_id, calendar_id, reference)
) strict;
create index calendar_entry_start on calendar_entry (client_id, calendar_id, start_at, reference);
create index calendar_entry_reference on calendar_entry (client_id, reference);
create index calendar_entry_past on calendar_entry (start_at);
create index calendar_entry_phone on calendar_entry (client_id, phone) where phone <> '';

insert into counter (noun, next) values ('calendar', 0), ('calendar_reading', 0);
