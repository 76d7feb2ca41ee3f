-- +goose Up

-- As in the steps before: nodes of the version before may live through all of this.
set local lock_timeout = '2s';

-- How Official sessions are known to the network, so that what it tells an app of several finds each.
create table official (
    client_id bigint not null,
    session_id bigint not null,
    number text not null, -- the network's id of the number
    account text not null, -- that of the business; '': nobody said
    synced_at bigint not null default 0, -- when its templates were last read
    problem text not null default '', -- why they could not be, the last time
    primary key (client_id, session_id)
);
create index official_number on official (number);
create index official_account on official (account) where account <> '';

-- Templates as the network has them.
create table network_template (
    client_id bigint not null,
    account text not null,
    name text not null,
    language text not null,
    network_id text not null,
    status text not null,
    category text not null,
    quality text not null,
    reason text not null,
    named bigint not null,
    parts text not null, -- JSON
    changed_at bigint not null,
    primary key (client_id, account, name, language)
);

-- Other names by which the network knows people: a number that it writes in another way, an id without a number.
create table alias (
    client_id bigint not null,
    session_id bigint not null,
    alias text not null,
    phone text not null,
    primary key (client_id, session_id, alias, phone)
);
create index alias_phone on alias (client_id, phone);
