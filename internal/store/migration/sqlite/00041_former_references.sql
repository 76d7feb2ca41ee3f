-- +goose Up

-- References that bookings had before their program gave them other ones. A call about one of them is late.
create table booking_former (
    client_id integer not null,
    reference text not null,
    booking_id integer not null,
    primary key (client_id, reference)
) strict;
create index booking_former_booking on booking_former (client_id, booking_id);
