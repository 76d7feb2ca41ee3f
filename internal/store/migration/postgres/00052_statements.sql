-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- What the network said that it bills for a message; charged_at 0: it said nothing yet.
alter table receipt add column category text not null default '';
alter table receipt add column country text not null default ''; -- of the recipient, two letters
alter table receipt add column billable smallint not null default 0; -- 0: it is free of charge
alter table receipt add column charged_at bigint not null default 0; -- when the network first said so

-- What a client used in a month. A row without frozen_at is only the mark of the node that counts.
create table statement (
    client_id bigint not null,
    month integer not null, -- YYYYMM in the client's zone
    working_until bigint not null default 0, -- no other node begins before
    frozen_at bigint not null default 0,
    counted_to bigint not null default 0, -- what became known later is a correction in the next month
    body text not null default '', -- JSON
    primary key (client_id, month)
);

-- What a partner asks for a message of each category.
create table statement_price (
    partner_id bigint primary key,
    currency text not null,
    prices text not null -- JSON object: exact decimal numbers by category
);
