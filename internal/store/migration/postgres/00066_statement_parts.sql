-- +goose Up

-- As what a closed month counted its messages, for corrections. Each row has some messages of one line. Rows of older months
-- are removed.
create table statement_part (
    month integer not null, -- as in statement
    client_id bigint not null,
    counted_to bigint not null, -- as in statement; rows with another one are of a count that was given up
    n integer not null,
    line text not null, -- JSON
    messages bytea not null, -- ascending ids, each as the varint of its difference to the one before
    primary key (month, client_id, counted_to, n)
);
