-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- Lists by state, newest first.
create index message_state on message (client_id, state, id) where state <> 0;
