-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- People whom the session's business may write to first in 24 hours; 0: any number, or the network did not say.
alter table official add column reach_limit bigint not null default 0;
-- 1: the network told what kind of message it bills, and charge counts it.
alter table receipt add column billed smallint not null default 0;

-- How many messages of a campaign the network bills, and how many it delivered for nothing.
create table charge (
    client_id bigint not null,
    campaign_id bigint not null,
    country text not null, -- of the recipient's number, two letters; '' unknown
    category text not null, -- the network's word
    billable smallint not null, -- 1: it bills them
    messages bigint not null,
    primary key (client_id, campaign_id, country, category, billable)
);
