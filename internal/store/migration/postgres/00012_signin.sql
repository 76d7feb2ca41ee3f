-- +goose Up

-- A ticket says what it is for, and ends when its user's password changes.
set local lock_timeout = '2s';
alter table ticket add column kind text not null default 'ticket'; -- see puntuale.UnfinishedKind
alter table ticket add column stamp bigint not null default 0; -- the user's, when the ticket was issued

-- The log of dashboards also has addresses, and failed attempts to sign in, of which repeats only count.
alter table audit add column address text not null default ''; -- of the person's browser; '' not known
alter table audit add column times bigint not null default 1 check (times > 0);
create index audit_failed on audit (login_id, at) where action = 'signin_failed';
