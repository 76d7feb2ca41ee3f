-- +goose Up

-- When a key was last used. It is stored at most every few minutes. 0: never, as far as is known.
alter table api_key add column used_at integer not null default 0;

-- Whose visit it is; 0: nobody is signed in. A visit that its user ended from another browser stays until it expires, so
-- that a request that is still running does not store it again.
alter table visit add column login_id integer not null default 0;
alter table visit add column ended_at integer not null default 0;
create index visit_login on visit (login_id) where login_id <> 0;
