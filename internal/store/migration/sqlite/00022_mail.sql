-- +goose Up

-- The same as on PostgreSQL; see there.

-- E-mails that wait to be sent. Address and text are made for each attempt.
create table mail (
    id integer primary key,
    partner_id integer not null, -- 0: not known
    login_id integer not null, -- the user who gets it; 0: not known yet
    kind integer not null,
    sealed blob not null, -- what the kind needs besides
    queued_at integer not null,
    next_at integer not null, -- the next attempt; an attempt that lasts is over by then
    attempts integer not null default 0 check (attempts >= 0)
) strict;
create index mail_due on mail (next_at);
create index mail_login on mail (login_id, kind);
create index mail_partner on mail (partner_id, kind);
