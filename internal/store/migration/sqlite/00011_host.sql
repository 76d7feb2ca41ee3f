-- +goose Up

-- A partner's host name counts only once it is confirmed. Names from before were never proven, so they wait for it.
alter table brand add column confirmed text not null default ''; -- the host, once it is proven to be the partner's
drop index brand_host;
create unique index brand_confirmed on brand (confirmed) where confirmed <> '';
