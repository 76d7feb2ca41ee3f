-- +goose Up

-- The same as on PostgreSQL; see there.
create table person_word (
    client_id integer not null,
    form text not null,
    word text not null,
    primary key (client_id, form, word)
) without rowid, strict;
insert into person_word (client_id, form, word)
select w.client_id, w.term, w.term from (select distinct t.client_id, t.term from person_term t where t.kind = 1 and length(t.term) >= 3) w
union
select w.client_id, substr(w.term, 1, n.i - 1) || substr(w.term, n.i + 1), w.term
from (select distinct t.client_id, t.term from person_term t where t.kind = 1 and length(t.term) >= 4) w
cross join (with recursive n(i) as (select 1 union all select i + 1 from n where i < 30) select i from n) as n
where n.i <= length(w.term);
