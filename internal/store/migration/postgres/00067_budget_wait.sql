-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- Marketing that waits because a budget is used up; no other message is in it.
create index message_budget on message (client_id, due_at, id) where state = 0 and detail = '["budget"]';
