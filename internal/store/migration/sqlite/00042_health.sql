-- +goose Up

-- The same as on PostgreSQL; see there.

-- What Meta's refusals hold back, so that a restart or another server does not try too early.
create table official_pause (
    client_id integer not null,
    session_id integer not null, -- 0: all numbers of the business
    account text not null, -- Meta's id of the business; '' unless session_id is 0
    scope integer not null, -- see puntuale.PauseKind
    subject text not null, -- a person, a country, a template or a category; '': everything in the scope
    code integer not null, -- Meta's code of the refusal
    reason text not null, -- the code of the sentence that people read
    final integer not null, -- 1: a message that it holds back fails; 0: the message waits
    detail text not null, -- Meta's text
    at integer not null, -- when Meta refused
    until integer not null,
    primary key (client_id, session_id, account, scope, subject)
) without rowid, strict;
create index official_pause_subject on official_pause (client_id, subject);
create index official_pause_until on official_pause (until);

-- What Meta says about the number and the business of an Official session.
create table official_health (
    client_id integer not null,
    session_id integer not null,
    kind text not null, -- see puntuale.HealthKind
    subject text not null, -- '' if there is only one of the kind
    value text not null,
    detail text not null,
    at integer not null, -- Meta's time of the report
    until integer not null, -- 0: no end is known
    confirmed_at integer not null, -- when Meta's answer about the number confirmed the report; 0: it did not
    primary key (client_id, session_id, kind, subject)
) without rowid, strict;
