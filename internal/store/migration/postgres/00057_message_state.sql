-- +goose NO TRANSACTION
-- +goose Up

-- Lists by state, newest first. Servers of the version before write meanwhile. An earlier try may have left an invalid index.
drop index concurrently if exists message_state;
create index concurrently message_state on message (client_id, state, id) where state <> 0;
