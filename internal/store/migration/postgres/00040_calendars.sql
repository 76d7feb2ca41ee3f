-- +goose Up

-- Feeds of appointments, and what was read in them.
set local lock_timeout = '2s';

create table calendar (
    client_id bigint not null,
    id bigint not null,
    name text not null,
    host text not null, -- of the address
    address bytea not null, -- sealed
    sequence_id bigint not null,
    sources text not null, -- JSON: the parts of an entry that are searched for a phone number, in order
    all_day smallint not null default 0,
    created_at bigint not null,
    started_at bigint not null default 0, -- 0: nothing is planned yet
    reading bigint not null default 0, -- number of the latest reading that began, or of the latest change by a person
    owner bigint not null default 0, -- the node that reads it now; 0: none
    next_at bigint not null, -- when it is read next
    tried_at bigint not null default 0,
    read_at bigint not null default 0, -- the latest good reading
    etag text not null default '',
    modified text not null default '',
    digest text not null default '', -- of what the latest good reading said
    failures bigint not null default 0,
    fault text not null default '', -- why the latest reading was bad
    told smallint not null default 0, -- people know that it cannot be read
    asked bigint not null default 0, -- so many entries are gone that a person must decide
    cancels bigint not null default 0, -- so many may be cancelled at once, because a person decided so
    entries bigint not null default 0,
    understood bigint not null default 0,
    primary key (client_id, id)
);
create index calendar_next on calendar (next_at);
create index calendar_owner on calendar (owner) where owner <> 0;

create table calendar_entry (
    client_id bigint not null,
    calendar_id bigint not null,
    reference text not null, -- of the booking
    start_at bigint not null,
    all_day smallint not null default 0,
    title text not null default '',
    place text not null default '',
    phone text not null default '',
    name text not null default '',
    cancelled smallint not null default 0,
    problem text not null default '', -- why it is no appointment
    warning text not null default '',
    digest text not null default '',
    applied text not null default '', -- the digest that the booking got last; '': there is no booking
    withdrawn smallint not null default 0, -- the booking was cancelled
    missing bigint not null default 0, -- so many readings agree that it is gone
    refused text not null default '', -- why the booking could not be changed
    primary key (client_id, calendar_id, reference)
);
create index calendar_entry_start on calendar_entry (client_id, calendar_id, start_at, reference);
create index calendar_entry_reference on calendar_entry (client_id, reference);
create index calendar_entry_past on calendar_entry (start_at);
create index calendar_entry_phone on calendar_entry (client_id, phone) where phone <> '';

insert into counter (noun, next) values ('calendar', 0), ('calendar_reading', 0);
