-- +goose Up

-- Nodes of the version before may run meanwhile: they do not hold back marketing, and what they record is counted.
set local lock_timeout = '2s';

-- Marketing waits until this moment, because the budget of the month is used up; 0: it does not wait.
alter table client add column marketing_from bigint not null default 0;

-- What a client's messages may cost in a month, and what those of the present month cost.
create table budget (
    client_id bigint primary key,
    amount bigint check (amount > 0), -- millionths of the currency; null: no budget any more
    currency text not null,
    zone text not null, -- in which the month begins
    began_at bigint not null, -- of the month that is counted
    ends_at bigint not null, -- when the next month begins
    spent bigint not null default 0, -- millionths of the currency
    unpriced bigint not null default 0, -- messages for which the list has no price
    generation bigint not null default 0, -- raised when a month is counted from its beginning
    counted smallint not null default 0 check (counted in (0, 1)), -- 0: messages that left before are still being counted
    place_at bigint not null default 0, -- of the message that was counted last: when its outcome was recorded, and its id
    place_id bigint not null default 0,
    told smallint not null default 0, -- 1: the warning, 2: that it is used up
    held_to bigint not null default 0, -- marketing that waits until then, or until its own deadline before, must leave now; 0: none
    let_at bigint not null default 0 -- since when it must
);

-- With what each message of the month is in a budget's sum.
create table budget_message (
    client_id bigint not null,
    generation bigint not null, -- as in budget; rows of lower generations are removed
    message_id bigint not null,
    amount bigint, -- null: the list has no price for it
    primary key (client_id, generation, message_id)
);

-- Messages for which the network told that they are free service messages.
create table free_service (
    client_id bigint not null,
    session_id bigint not null,
    month integer not null, -- YYYYMM in the client's zone
    messages bigint not null,
    primary key (client_id, session_id, month)
);
