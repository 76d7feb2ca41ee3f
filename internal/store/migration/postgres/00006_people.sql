-- +goose Up

-- People who sign in to dashboards. An older program still inserts logins without what is new here: its clients' first
-- login owns the dashboard.

alter table login add column name text not null default '';
alter table login add column role smallint not null default 3 check (role between 1 and 3); -- 1 reads, 2 works, 3 owns
alter table login add column language text not null default ''; -- '': as the browser asks
alter table login add column stamp bigint not null default 0; -- raised to end what the user has open
alter table login add column second bytea not null default ''; -- sealed secret of the second factor; empty: none
alter table login add column second_last bigint not null default 0; -- the time step taken last
alter table login add column recovery text not null default '[]'; -- JSON array of keyed hashes
alter table login add column seen_at bigint not null default 0; -- signed in last
create index login_email on login (lower(email));

-- How a partner's pages look.
create table brand (
    partner_id bigint primary key,
    name text not null default '',
    colour text not null default '', -- #rrggbb
    logo bytea not null default '',
    logo_kind text not null default '',
    host text not null default '',
    mark text not null -- changes with what is shown
);
create unique index brand_host on brand (host) where host <> '';

-- What was done in dashboards.
create table audit (
    id bigint generated always as identity primary key,
    partner_id bigint not null,
    client_id bigint not null default 0, -- 0: in the partner's own
    login_id bigint not null,
    who text not null,
    entry smallint not null default 0 check (entry in (0, 1)), -- the partner's user in the client's dashboard
    action text not null,
    target text not null default '',
    at bigint not null
);
create index audit_partner on audit (partner_id, id);
create index audit_client on audit (partner_id, client_id, id) where client_id <> 0;

-- Browsers of people who are signed in, or about to be.
create table visit (
    token text primary key, -- hashed
    data bytea not null,
    expires_at bigint not null
);
create index visit_expires on visit (expires_at);

-- Attempts to sign in, by account and by address.
create table try (
    mark text primary key, -- keyed hash
    tries bigint not null,
    at bigint not null -- of the last one
);
create index try_at on try (at);

-- Whoever holds one signs in as its user, once.
create table ticket (
    hash text primary key,
    login_id bigint not null,
    expires_at bigint not null
);

-- Outcomes by day, in each client's zone, counted up to a moment: a page must not count a million messages.
create table day_total (
    client_id bigint not null,
    day integer not null, -- YYYYMMDD
    sent bigint not null,
    failed bigint not null,
    primary key (client_id, day)
);
create table total_mark (
    client_id bigint primary key,
    at bigint not null -- what was done before it is counted
);
