-- +goose Up

-- The storage that has the bytes of files has an object with this marker. So no server takes another place for it.
create table file_storage (
    one smallint primary key check (one = 1),
    marker text not null,
    placed_at bigint not null default 0 -- since when the object is there; 0: perhaps it is not
);
