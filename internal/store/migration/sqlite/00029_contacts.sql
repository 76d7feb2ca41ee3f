-- +goose Up

-- Triggers of changed contacts (kind 40) have an index of their own. So replies do not wait behind the contacts of an import.
drop index automation_trigger_due;
create index automation_trigger_due on automation_trigger (next_at, id) where kind <> 40;
create index automation_trigger_contact on automation_trigger (next_at, id) where kind = 40;
