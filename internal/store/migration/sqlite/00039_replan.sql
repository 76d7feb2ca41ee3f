-- +goose Up

-- An edited sequence is applied to the bookings that there are, in the order of their ids.
create table replan (
    client_id integer not null,
    sequence_id integer not null,
    state integer not null, -- 0 running, 1 paused, 2 cancelled, 3 done
    door integer not null, -- through what it was started
    edited_at integer not null, -- the sequence's last change, as it is being applied
    cursor_id integer not null default 0, -- the last booking that was looked at
    last_id integer not null, -- the last booking that there was
    bookings integer not null, -- how many bookings it concerns
    done integer not null default 0,
    planned integer not null default 0,
    moved integer not null default 0,
    cancelled integer not null default 0,
    refused integer not null default 0, -- bookings that could not be planned
    started_at integer not null,
    ended_at integer not null default 0,
    owner integer not null default 0, -- the node that works on it
    owned_until integer not null default 0,
    primary key (client_id, sequence_id)
) strict;
create index replan_running on replan (state) where state = 0;

create index booking_of_sequence on booking (client_id, sequence_id, id);
drop index booking_sequence;
