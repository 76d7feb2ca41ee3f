-- +goose Up

-- The same as on PostgreSQL; see there.

-- Marketing waits until this moment, because the budget of the month is used up; 0: it does not wait.
alter table client add column marketing_from integer not null default 0;

-- What a client's messages may cost in a month, and what those of the present month cost.
create table budget (
    client_id integer primary key,
    amount integer check (amount > 0), -- millionths of the currency; null: no budget any more
    currency text not null,
    zone text not null, -- in which the month begins
    began_at integer not null, -- of the month that is counted
    ends_at integer not null, -- when the next month begins
    spent integer not null default 0, -- millionths of the currency
    unpriced integer not null default 0, -- messages for which the list has no price
    generation integer not null default 0, -- raised when a month is counted from its beginning
    counted integer not null default 0 check (counted in (0, 1)), -- 0: messages that left before are still being counted
    place_at integer not null default 0, -- of the message that was counted last: when its outcome was recorded, and its id
    place_id integer not null default 0,
    told integer not null default 0, -- 1: the warning, 2: that it is used up
    held_to integer not null default 0, -- marketing that waits until then, or until its own deadline before, must leave now; 0: none
    let_at integer not null default 0 -- since when it must
) strict;

-- With what each message of the month is in a budget's sum.
create table budget_message (
    client_id integer not null,
    generation integer not null, -- as in budget; rows of lower generations are removed
    message_id integer not null,
    amount integer, -- null: the list has no price for it
    primary key (client_id, generation, message_id)
) strict;

-- Messages for which the network told that they are free service messages.
create table free_service (
    client_id integer not null,
    session_id integer not null,
    month integer not null, -- YYYYMM in the client's zone
    messages integer not null,
    primary key (client_id, session_id, month)
) strict;
