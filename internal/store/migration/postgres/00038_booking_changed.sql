-- +goose Up

-- An open page of bookings looks every second or two for what changed last.
create index booking_changed on booking (client_id, changed_at);
