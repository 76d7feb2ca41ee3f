-- +goose Up

-- The same as on PostgreSQL; see there.

-- Which of Meta's optional ways an Official session may use; see puntuale.WaySettings.
alter table session add column direct_send integer not null default 0 check (direct_send in (0, 1));
alter table session add column marketing_path integer not null default 0 check (marketing_path in (0, 1));
alter table session add column creative integer not null default 0 check (creative in (0, 1));

-- What Meta's answers say about these ways. A change of the number or of the business removes both.
alter table official add column direct_send_at integer not null default 0; -- when Meta first took a message by Direct Send; 0: never
alter table official add column opted_out_at integer not null default 0; -- when the business told Meta not to change how messages look; 0: never
