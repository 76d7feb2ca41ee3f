-- +goose Up

-- The same as on PostgreSQL; see there.

-- What people are told: see package notice.
create table notice (
    id integer primary key,
    partner_id integer not null,
    client_id integer not null, -- 0: it is for the partner's own users
    login_id integer not null default 0, -- 0: for all users of that side
    kind integer not null,
    subject integer not null, -- the id of the session, campaign, webhook, key or client; 0: none
    detail text not null default '', -- JSON object of what the subject's row does not tell
    at integer not null, -- of the fact
    due_at integer not null, -- when people are told
    open integer not null default 0 check (open in (0, 1)), -- 1: the session is still disconnected
    mailed integer not null default 0 check (mailed in (0, 1)) -- 1: its e-mails are in the queue, or are not needed
) strict;
create index notice_reader on notice (client_id, partner_id, due_at);
create index notice_open on notice (client_id, subject) where open = 1;
create index notice_due on notice (due_at) where mailed = 0;

-- Who read what.
create table notice_read (
    login_id integer not null,
    notice_id integer not null,
    primary key (login_id, notice_id)
) without rowid, strict;
create index notice_read_notice on notice_read (notice_id);

-- Which kinds a user gets by e-mail, and how many e-mails came lately.
create table notice_choice (
    login_id integer primary key,
    on_kinds integer not null default 0, -- a bit for each kind that the user turned on
    off_kinds integer not null default 0, -- likewise, off; kinds in neither are as for everybody
    mails integer not null default 0, -- e-mails since mails_from
    mails_from integer not null default 0
) without rowid, strict;
