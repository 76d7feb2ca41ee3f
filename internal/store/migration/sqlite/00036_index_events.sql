-- +goose Up

-- A list of a day reads only the bookings that have the asked status and sequence.
drop index booking_date;
create index booking_date on booking (client_id, date_at, id, status, sequence_id);

-- What subscribes to every event also gets the new ones.
update webhook set types = types | 51539607552 where types & 17112760318 = 17112760318;
update event_stream set wanted = wanted | 51539607552 where wanted & 17112760318 = 17112760318;
