-- +goose Up

-- References that bookings had before their program gave them other ones. A call about one of them is late.
set local lock_timeout = '2s';

create table booking_former (
    client_id bigint not null,
    reference text not null,
    booking_id bigint not null,
    primary key (client_id, reference)
);
create index booking_former_booking on booking_former (client_id, booking_id);
