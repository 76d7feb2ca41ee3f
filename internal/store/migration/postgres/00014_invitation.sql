-- +goose Up

-- Links with which users set a password: who was invited, and who lost theirs.
create table invitation (
    login_id bigint primary key,
    hash text not null unique,
    expires_at bigint not null
);
