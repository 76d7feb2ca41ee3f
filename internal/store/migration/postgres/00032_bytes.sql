-- +goose Up

-- The bytes that the client's calls stored on this day.
alter table api_usage add column bytes bigint not null default 0;
