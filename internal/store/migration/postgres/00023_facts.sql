-- +goose Up

-- Nodes of the version before may run meanwhile. What they change is not told.
set local lock_timeout = '2s';

-- The subjects of more facts that are alike, one after the other, with a comma before each; '': none. Batches of messages write few rows so.
alter table outbox_fact add column more text not null default '';

-- What a session's client was told last: 0 nothing yet, 1 unlinked, 2 offline, 3 restricted, 4 online.
alter table session add column told smallint not null default 0;

-- What the client was told on this day: 1 that 80 percent of the cap are used, 2 that all of it is, 3 both.
alter table api_usage add column told smallint not null default 0;

-- The credits after the last top-up, which tell when few are left; 0: not known.
alter table client add column credits_topped bigint not null default 0;
-- What the client was told since: 1 that few credits are left, 2 that none is, 3 both.
alter table client add column credits_told smallint not null default 0;
-- What the client was told of its end: 1 to 3 that it comes, 4 that it came; 0: nothing.
alter table client add column expiry_told smallint not null default 0;
alter table client add column expiry_told_at bigint not null default 0; -- the end that this was about, as expires_at
create index client_expiry on client (expires_at) where expires_at > 0;
