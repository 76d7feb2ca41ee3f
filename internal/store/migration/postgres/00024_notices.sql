-- +goose Up

-- Nodes of the version before may run meanwhile. They tell people nothing.
set local lock_timeout = '2s';

-- What people are told: see package notice.
create table notice (
    id bigint generated always as identity primary key,
    partner_id bigint not null,
    client_id bigint not null, -- 0: it is for the partner's own users
    login_id bigint not null default 0, -- 0: for all users of that side
    kind smallint not null,
    subject bigint not null, -- the id of the session, campaign, webhook, key or client; 0: none
    detail text not null default '', -- JSON object of what the subject's row does not tell
    at bigint not null, -- of the fact
    due_at bigint not null, -- when people are told
    open smallint not null default 0 check (open in (0, 1)), -- 1: the session is still disconnected
    mailed smallint not null default 0 check (mailed in (0, 1)) -- 1: its e-mails are in the queue, or are not needed
);
create index notice_reader on notice (client_id, partner_id, due_at);
create index notice_open on notice (client_id, subject) where open = 1;
create index notice_due on notice (due_at) where mailed = 0;

-- Who read what.
create table notice_read (
    login_id bigint not null,
    notice_id bigint not null,
    primary key (login_id, notice_id)
);
create index notice_read_notice on notice_read (notice_id);

-- Which kinds a user gets by e-mail, and how many e-mails came lately.
create table notice_choice (
    login_id bigint primary key,
    on_kinds bigint not null default 0, -- a bit for each kind that the user turned on
    off_kinds bigint not null default 0, -- likewise, off; kinds in neither are as for everybody
    mails integer not null default 0, -- e-mails since mails_from
    mails_from bigint not null default 0
);
