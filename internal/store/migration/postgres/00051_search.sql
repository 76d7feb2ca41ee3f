-- +goose Up

-- By which ways of writing with a typing error the words of names are found: each word itself, and the word without each
-- one of its letters. Two words that differ in one letter share such a form. A word is here once for a client, however
-- many contacts have it. The rows follow from person_term, so they do not move to another installation.
create table person_word (
    client_id bigint not null,
    form text collate "C" not null,
    word text collate "C" not null, -- as in person_term
    primary key (client_id, form, word)
);
insert into person_word (client_id, form, word)
select w.client_id, w.term, w.term from (select distinct t.client_id, t.term from person_term t where t.kind = 1 and length(t.term) >= 3) w
union
select w.client_id, substr(w.term, 1, n.i - 1) || substr(w.term, n.i + 1), w.term
from (select distinct t.client_id, t.term from person_term t where t.kind = 1 and length(t.term) >= 4) w cross join generate_series(1, 30) as n(i)
where n.i <= length(w.term);
