-- +goose Up

-- The same as on PostgreSQL; see there.

-- The campaign that a run belongs to; 0: none.
alter table run add column campaign_id integer not null default 0;
alter table message add column campaign_id integer not null default 0;
-- 0: leaves before those with 1, which a campaign fed.
alter table message add column priority integer not null default 0;

drop index message_open;
create index message_open on message (session_id, priority, next_at) where state = 0;
create index message_campaign on message (campaign_id, state) where campaign_id <> 0;

create table campaign (
    client_id integer not null,
    id integer not null,
    session_id integer not null,
    sequence_id integer not null, -- 0: one message
    state integer not null,
    name text not null,
    draft text not null, -- JSON of what a person decides
    frozen text not null default '', -- JSON of the sequence as it is sent, from the start on
    list_id integer not null default 0, -- the current list; 0: none
    checked text not null default '', -- JSON of the last check's answer
    checked_at integer not null default 0, -- when the check that runs last showed that it is alive
    reason text not null default '', -- why it paused or failed
    created_at integer not null,
    created_by integer not null, -- a login; 0: a key
    started_at integer not null default 0,
    paused_at integer not null default 0, -- of the pause that lasts, or whose end is being carried out
    resumed_at integer not null default 0,
    ended_at integer not null default 0,
    final text not null default '', -- JSON of the messages' counts when it ended last
    primary key (client_id, id)
) without rowid, strict;
create index campaign_session on campaign (session_id, state);
create index campaign_state on campaign (state);

-- How far a campaign is fed. Its feeder writes this row, and before the start what changes the list.
create table campaign_feed (
    client_id integer not null,
    campaign_id integer not null,
    place integer not null default 0, -- the last recipient that was looked at
    next_at integer not null default 0, -- the moment of the next recipient
    waiting integer not null default 0,
    fed integer not null default 0,
    refused integer not null default 0,
    primary key (client_id, campaign_id)
) without rowid, strict;

-- A list of recipients. A campaign names its current one; the others are on their way, or to be removed.
create table campaign_list (
    client_id integer not null,
    id integer not null,
    campaign_id integer not null,
    columns text not null, -- JSON of the header
    mapping text not null,
    size integer not null default 0,
    written_at integer not null, -- when it last grew
    primary key (client_id, id)
) without rowid, strict;
create index campaign_list_campaign on campaign_list (client_id, campaign_id);

create table recipient (
    client_id integer not null,
    list_id integer not null,
    n integer not null,
    line integer not null, -- of the file
    phone text not null, -- as the messages have it; '' where it is no number, or was erased
    cells text not null, -- JSON, in the order of the columns; '' once they were removed
    state integer not null default 0, -- 0 waiting, 1 fed, 2 refused
    reason text not null default '',
    value text not null default '', -- what was refused
    run_id integer not null default 0,
    moved_at integer not null default 0, -- the resumption that moved its messages last
    primary key (client_id, list_id, n)
) without rowid, strict;
create index recipient_phone on recipient (client_id, phone);
create index recipient_refused on recipient (client_id, list_id, reason, n) where state = 2;

insert into counter (noun, next) values ('campaign', 0), ('list', 0);
