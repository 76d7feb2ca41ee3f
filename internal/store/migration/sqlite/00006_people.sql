-- +goose Up

-- The same as on PostgreSQL; see there.

alter table login add column name text not null default '';
alter table login add column role integer not null default 3 check (role between 1 and 3); -- 1 reads, 2 works, 3 owns
alter table login add column language text not null default ''; -- '': as the browser asks
alter table login add column stamp integer not null default 0; -- raised to end what the user has open
alter table login add column second blob not null default x''; -- sealed secret of the second factor; empty: none
alter table login add column second_last integer not null default 0; -- the time step taken last
alter table login add column recovery text not null default '[]'; -- JSON array of keyed hashes
alter table login add column seen_at integer not null default 0; -- signed in last
create index login_email on login (lower(email));

-- How a partner's pages look.
create table brand (
    partner_id integer primary key,
    name text not null default '',
    colour text not null default '', -- #rrggbb
    logo blob not null default x'',
    logo_kind text not null default '',
    host text not null default '',
    mark text not null -- changes with what is shown
) strict;
create unique index brand_host on brand (host) where host <> '';

-- What was done in dashboards.
create table audit (
    id integer primary key,
    partner_id integer not null,
    client_id integer not null default 0, -- 0: in the partner's own
    login_id integer not null,
    who text not null,
    entry integer not null default 0 check (entry in (0, 1)), -- the partner's user in the client's dashboard
    action text not null,
    target text not null default '',
    at integer not null
) strict;
create index audit_partner on audit (partner_id);
create index audit_client on audit (partner_id, client_id) where client_id <> 0;

-- Browsers of people who are signed in, or about to be.
create table visit (
    token text primary key, -- hashed
    data blob not null,
    expires_at integer not null
) without rowid, strict;
create index visit_expires on visit (expires_at);

-- Attempts to sign in, by account and by address.
create table try (
    mark text primary key, -- keyed hash
    tries integer not null,
    at integer not null -- of the last one
) without rowid, strict;
create index try_at on try (at);

-- Whoever holds one signs in as its user, once.
create table ticket (
    hash text primary key,
    login_id integer not null,
    expires_at integer not null
) without rowid, strict;

-- Outcomes by day, in each client's zone, counted up to a moment: a page must not count a million messages.
create table day_total (
    client_id integer not null,
    day integer not null, -- YYYYMMDD
    sent integer not null,
    failed integer not null,
    primary key (client_id, day)
) without rowid, strict;
create table total_mark (
    client_id integer primary key,
    at integer not null -- what was done before it is counted
) strict;
