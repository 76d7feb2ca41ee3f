-- +goose Up

-- What clients ask of the network about its templates. A row stands before the call that it is about, so a call that got
-- no answer is found again.
set local lock_timeout = '2s';

create table template_request (
    client_id bigint not null,
    id bigint not null,
    session_id bigint not null,
    account text not null, -- the network's id of the business
    kind bigint not null, -- 1 create, 2 edit, 3 unpause, 4 delete
    name text not null,
    language text not null,
    network_id text not null default '', -- of the template; '': not known yet
    draft text not null, -- JSON
    approved bigint not null default 0, -- 1: an edit of a template that was approved, which the network counts
    upload text not null default '', -- the network's name of the sample's upload
    state bigint not null default 0, -- 0 waiting, 1 called, 2 done, 3 refused
    reason text not null default '',
    made_at bigint not null,
    called_at bigint not null default 0,
    due_at bigint not null, -- until then the call may be under way
    ended_at bigint not null default 0,
    primary key (client_id, id)
);
create index template_request_account on template_request (client_id, account, made_at);
create index template_request_open on template_request (session_id) where state < 2;
insert into counter (noun, next) values ('template_request', 0);

alter table network_template add column advice text not null default ''; -- what the network advises after a rejection
alter table network_template add column wanted text not null default ''; -- the category that the client agreed to
alter table network_template add column locked_at bigint not null default 0; -- when the client deleted it; its name is locked for some time
update network_template set wanted = category;

alter table client_setting add column flatten_values bigint not null default 0; -- 1: values of templates are put on one line
alter table client_setting add column pause_costlier bigint not null default 0; -- 1: messages wait when the network makes their template marketing
