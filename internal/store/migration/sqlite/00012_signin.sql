-- +goose Up

-- The same as on PostgreSQL; see there.

alter table ticket add column kind text not null default 'ticket'; -- see puntuale.UnfinishedKind
alter table ticket add column stamp integer not null default 0; -- the user's, when the ticket was issued

alter table audit add column address text not null default ''; -- of the person's browser; '' not known
alter table audit add column times integer not null default 1 check (times > 0);
create index audit_failed on audit (login_id, at) where action = 'signin_failed';
