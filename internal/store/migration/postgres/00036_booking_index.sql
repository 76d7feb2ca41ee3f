-- +goose Up

-- A list of a day reads only the bookings that have the asked status and sequence.
set local lock_timeout = '2s';

drop index booking_date;
create index booking_date on booking (client_id, date_at, id, status, sequence_id);
