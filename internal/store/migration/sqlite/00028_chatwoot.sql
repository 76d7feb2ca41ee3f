-- +goose Up

-- The same as on PostgreSQL; see there.

-- A webhook that hands a session's conversations over to an inbox of Chatwoot. Its secret is the access token, sealed.
create table chatwoot_link (
    client_id integer not null,
    session_id integer not null,
    webhook_id integer not null,
    account_id integer not null, -- in Chatwoot
    inbox_id integer not null default 0, -- in Chatwoot; 0: the link is not finished
    primary key (client_id, session_id)
) strict;
create unique index chatwoot_link_webhook on chatwoot_link (webhook_id);

-- What a link knows of a person.
create table chatwoot_conversation (
    client_id integer not null,
    phone text not null,
    webhook_id integer not null,
    contact_id integer not null default 0, -- in Chatwoot
    conversation_id integer not null default 0, -- in Chatwoot; 0: there is none yet
    posting text not null default '', -- the name of what was posted last
    assigned_at integer not null default 0, -- since when an agent has the conversation; 0: nobody has
    primary key (client_id, phone, webhook_id)
) strict;
create index chatwoot_conversation_id on chatwoot_conversation (webhook_id, conversation_id) where conversation_id <> 0;
