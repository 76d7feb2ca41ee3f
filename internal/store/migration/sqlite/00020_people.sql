-- +goose Up

-- The same as on PostgreSQL; see there.

-- message.valid_until: microseconds since 1970. Negative: a stop reached the message while an attempt was in flight; the
-- moment is its absolute value, and nothing is tried again.

-- Why a message is sent: 0 service, 1 marketing, 2 the one answer to an opt-out, which the blacklist lets through.
alter table message add column purpose integer not null default 0;
-- What the messages of the sequence are for: 0 service, 1 marketing.
alter table sequence add column purpose integer not null default 0 check (purpose between 0 and 1);
-- Who made the entry: 0 a person or a program, 1 an opt-out, whose undo removes it.
alter table blacklist add column origin integer not null default 0;

-- What a client decides about the people that it writes to. A client without a row has the defaults.
create table client_setting (
    client_id integer primary key,
    remember integer not null default 0 check (remember in (0, 1)), -- 1: everybody who is written to becomes a contact
    remembered_to integer not null default 0, -- the last run whose person was looked at
    keep_replies text not null default 'known', -- known, all, none
    consent text not null default 'free', -- free, required
    opt_out_words text not null default '', -- JSON array; '': the usual words
    opt_out_answer text not null default '', -- the text that confirms an opt-out; '': none is sent
    takeover_hours integer not null default 12 check (takeover_hours >= 0)
) without rowid, strict;

-- The people in a client's list. The table "contact" holds what a session knows of a number.
create table person (
    client_id integer not null,
    id integer not null,
    phone text not null,
    name text not null default '',
    language text not null default '',
    source text not null default '', -- where the contact came from
    fields text not null default '{}', -- JSON object of texts, numbers and dates
    tags text not null default '[]', -- JSON array, sorted
    created_at integer not null,
    changed_at integer not null,
    primary key (client_id, id)
) without rowid, strict;
create unique index person_phone on person (client_id, phone);

-- How many contacts a client has. A transaction that changes contacts locks this row first.
create table person_count (
    client_id integer primary key,
    people integer not null check (people >= 0)
) without rowid, strict;

-- By what people are found: each word of a name, without accents and in small letters, and each tag.
create table person_term (
    client_id integer not null,
    kind integer not null check (kind in (1, 2)), -- 1 a word of the name, 2 a tag
    term text not null,
    person_id integer not null,
    primary key (client_id, kind, term, person_id)
) without rowid, strict;
create index person_term_person on person_term (client_id, person_id);

-- What people wrote, and what the client's people wrote to them on the linked phone itself.
create table reply (
    client_id integer not null,
    id integer not null, -- grows with time
    session_id integer not null,
    phone text not null, -- '' once the person was erased
    at integer not null, -- when it was written, by the network
    own integer not null default 0 check (own in (0, 1)), -- 1: the client's people wrote it on the linked phone
    kind text not null,
    text text not null default '',
    media text not null default '', -- JSON: the file's kind, name, size, and where its network keeps it; '': none
    network_id text not null default '',
    run_id integer not null default 0, -- the latest run that wrote to the person in the 30 days before; 0: none
    effect integer not null default 0 check (effect between 0 and 3), -- 1 it stopped messages, 2 opt-out, 3 an opt-out undone
    read_at integer not null default 0, -- when somebody read it; 0: not yet
    blanked_at integer not null default 0, -- when its text was removed; 0: it is there
    primary key (client_id, id)
) without rowid, strict;
create index reply_phone on reply (client_id, phone, id);
create index reply_unread on reply (client_id, id) where read_at = 0 and own = 0;
create index reply_kept on reply (at) where blanked_at = 0;

-- One row for each person who wrote, or whom the client's people answered.
create table conversation (
    client_id integer not null,
    phone text not null,
    last_id integer not null default 0, -- the latest reply
    unread integer not null default 0 check (unread >= 0),
    answered_at integer not null default 0, -- when the client's people wrote last, by phone or dashboard; 0: never
    primary key (client_id, phone)
) without rowid, strict;
create index conversation_last on conversation (client_id, last_id) where last_id > 0;
create index conversation_unread on conversation (client_id, last_id) where unread > 0;

-- What the network told already. It survives an erasure, so it names nobody.
create table inbound_seen (
    client_id integer not null,
    mark text not null, -- keyed hash of session, chat and the network's id
    at integer not null,
    primary key (client_id, mark)
) without rowid, strict;
create index inbound_seen_at on inbound_seen (at);

-- Proof of what people agreed to. Rows are only added. An erasure replaces the phone by its mark and removes the words.
create table consent (
    client_id integer not null,
    id integer not null, -- grows with time
    phone text not null, -- or the mark of an erased person
    purpose integer not null check (purpose between 0 and 1), -- 0 service, 1 marketing
    change integer not null check (change between 1 and 3), -- 1 grant, 2 withdraw, 3 undo
    source text not null,
    words text not null default '',
    message text not null default '', -- the network's id of the person's message; '': there is none
    mark text not null default '', -- of that message, as in inbound_seen; '': there is none
    by_whom text not null default '', -- the user or key that entered it; '': the person
    at integer not null, -- the person's time
    entered_at integer not null,
    applied integer not null check (applied in (0, 1)), -- 0: a later change was known already
    changed integer not null check (changed in (0, 1)), -- 1: what held before was another
    primary key (client_id, id)
) without rowid, strict;
create index consent_phone on consent (client_id, phone, id);
create unique index consent_mark on consent (client_id, phone, mark) where mark <> '';

-- What holds now.
create table consent_state (
    client_id integer not null,
    phone text not null, -- or the mark of an erased person
    purpose integer not null check (purpose between 0 and 1),
    change integer not null check (change between 1 and 3), -- the latest
    granted_before integer not null default 0 check (granted_before in (0, 1)), -- 1: a consent held when the latest withdrawal came
    at integer not null, -- the person's time of the latest change
    primary key (client_id, phone, purpose)
) without rowid, strict;

insert into counter (noun, next) values ('person', 0);

-- What people set in WhatsApp put them on the blacklist until now. It was a withdrawal of marketing.
insert into consent (client_id, id, phone, purpose, change, source, words, at, entered_at, applied, changed)
select client_id, id, phone, 1, 2, 'whatsapp preference', reason, added_at, added_at, 1, 1 from blacklist where reason like 'Preferenza: %' and id > 0;
insert into consent_state (client_id, phone, purpose, change, at)
select client_id, phone, 1, 2, added_at from blacklist where reason like 'Preferenza: %' and id > 0;
