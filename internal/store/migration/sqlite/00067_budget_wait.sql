-- +goose Up

-- The same as on PostgreSQL; see there.
create index message_budget on message (client_id, due_at, id) where state = 0 and detail = '["budget"]';
