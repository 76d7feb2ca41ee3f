-- +goose Up

-- Each call that means a person asks for all names of the person, from an id to the number, too.
create index alias_name on alias (client_id, alias);
