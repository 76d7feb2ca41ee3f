-- +goose Up

set local lock_timeout = '2s';

-- An edited sequence is applied to the bookings that there are, in the order of their ids.
create table replan (
    client_id bigint not null,
    sequence_id bigint not null,
    state smallint not null, -- 0 running, 1 paused, 2 cancelled, 3 done
    door smallint not null, -- through what it was started
    edited_at bigint not null, -- the sequence's last change, as it is being applied
    cursor_id bigint not null default 0, -- the last booking that was looked at
    last_id bigint not null, -- the last booking that there was
    bookings bigint not null, -- how many bookings it concerns
    done bigint not null default 0,
    planned bigint not null default 0,
    moved bigint not null default 0,
    cancelled bigint not null default 0,
    refused bigint not null default 0, -- bookings that could not be planned
    started_at bigint not null,
    ended_at bigint not null default 0,
    owner bigint not null default 0, -- the node that works on it
    owned_until bigint not null default 0,
    primary key (client_id, sequence_id)
);
create index replan_running on replan (state) where state = 0;

create index booking_of_sequence on booking (client_id, sequence_id, id);
drop index booking_sequence;
