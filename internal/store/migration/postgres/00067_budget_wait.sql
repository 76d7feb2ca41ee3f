-- +goose NO TRANSACTION
-- +goose Up

-- Marketing that waits because a budget is used up; no other message is in it. Servers of the version before write meanwhile. An
-- earlier try may have left an invalid index.
drop index concurrently if exists message_budget;
create index concurrently message_budget on message (client_id, due_at, id) where state = 0 and detail = '["budget"]';
