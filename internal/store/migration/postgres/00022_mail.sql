-- +goose Up

-- Nodes of the version before may run meanwhile. They queue no e-mail.
set local lock_timeout = '2s';

-- E-mails that wait to be sent. Address and text are made for each attempt.
create table mail (
    id bigint generated always as identity primary key,
    partner_id bigint not null, -- 0: not known
    login_id bigint not null, -- the user who gets it; 0: not known yet
    kind smallint not null,
    sealed bytea not null, -- what the kind needs besides
    queued_at bigint not null,
    next_at bigint not null, -- the next attempt; an attempt that lasts is over by then
    attempts integer not null default 0 check (attempts >= 0)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index mail_due on mail (next_at);
create index mail_login on mail (login_id, kind);
create index mail_partner on mail (partner_id, kind);
