-- +goose Up

-- The same as on PostgreSQL; see there.
create index alias_name on alias (client_id, alias);
