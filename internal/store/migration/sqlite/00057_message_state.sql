-- +goose Up

-- The same as on PostgreSQL; see there.

create index message_state on message (client_id, state, id) where state <> 0;
