-- +goose Up

-- Nodes of the version before may run meanwhile. They do not end a page when they link its number; a number that is
-- linked shows no code all the same.
set local lock_timeout = '2s';

-- The page with which somebody links a session's number without signing in. code_mark is the keyed hash of its address,
-- as it is of a device's code; no session has both.
alter table session add column page_until bigint not null default 0; -- 0: it has no page, or the page was used
alter table session add column page_starts smallint not null default 0; -- how often the page began to link
