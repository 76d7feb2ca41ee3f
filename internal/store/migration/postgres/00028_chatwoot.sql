-- +goose Up

-- A node of the version before knows a link only as a webhook. It posts signed events to the server of Chatwoot, which refuses them, and they are
-- tried again later.
set local lock_timeout = '2s';

-- A webhook that hands a session's conversations over to an inbox of Chatwoot. Its secret is the access token, sealed.
create table chatwoot_link (
    client_id bigint not null,
    session_id bigint not null,
    webhook_id bigint not null,
    account_id bigint not null, -- in Chatwoot
    inbox_id bigint not null default 0, -- in Chatwoot; 0: the link is not finished
    primary key (client_id, session_id)
);
create unique index chatwoot_link_webhook on chatwoot_link (webhook_id);

-- What a link knows of a person.
create table chatwoot_conversation (
    client_id bigint not null,
    phone text not null,
    webhook_id bigint not null,
    contact_id bigint not null default 0, -- in Chatwoot
    conversation_id bigint not null default 0, -- in Chatwoot; 0: there is none yet
    posting text not null default '', -- the name of what was posted last
    assigned_at bigint not null default 0, -- since when an agent has the conversation; 0: nobody has
    primary key (client_id, phone, webhook_id)
);
create index chatwoot_conversation_id on chatwoot_conversation (webhook_id, conversation_id) where conversation_id <> 0;
