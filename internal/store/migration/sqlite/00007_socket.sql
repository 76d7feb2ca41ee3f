-- +goose Up

-- The same as on PostgreSQL; see there.

-- Which of several a linked session's state is, and until when it writes to nobody whom it does not know.
alter table session add column link_condition integer not null default 0; -- 0: the state says it all
alter table session add column limited_until integer not null default 0;

-- The rest of the pace, of which per_min is a part; 0: no limit.
alter table session add column per_day integer not null default 0 check (per_day >= 0);
alter table session add column cold_per_min integer not null default 0 check (cold_per_min >= 0);
alter table session add column cold_per_day integer not null default 0 check (cold_per_day >= 0);
alter table session add column jitter integer not null default 0 check (jitter >= 0); -- seconds

-- Real numbers that were made before begin cautiously.
update session set per_min = 20, per_day = 1000, cold_per_min = 3, cold_per_day = 50, jitter = 3
 where type = 'Socket' and sandbox = 0 and per_min = 0;

-- When they first got something from the session; 0: never, as far as it is known.
alter table contact add column met_at integer not null default 0;
