-- The statements that nodes of schema 1 send to PostgreSQL, as their store's tests made it send them. They must go on
-- working beside newer nodes (docs/decisions/running.md), so this file is not edited; it goes once no supported
-- version sends them any more.

delete from api_usage where (client_id, day) in (select u.c, u.d from unnest($1::bigint[], $2::integer[]) as u(c, d));

delete from blacklist where client_id = $1 and phone = $2;

delete from idempotency where (client_id, scope, key) in
 (select u.c, u.s, u.k from unnest($1::bigint[], $2::text[], $3::text[]) as u(c, s, k));

delete from idempotency where at < $1 and (client_id, scope, key) in
 (select u.c, u.s, u.k from unnest($2::bigint[], $3::text[], $4::text[]) as u(c, s, k));

delete from login where client_id = $1;

delete from node where id = $1;

delete from node where id in (
 select id from node where lease_until <= (extract(epoch from clock_timestamp()) * 1000000)::bigint order by id for update skip locked);

delete from template where client_id = $1 and id = $2;

insert into api_key (id, partner_id, client_id, name, prefix, hash, created_at, expires_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8);

insert into api_usage as g (client_id, day, asked, prev, used) values ($1, $2, 0, 0, 0)
 on conflict (client_id, day) do update set used = g.used;

insert into api_usage as g (client_id, day, cap, asked, prev, used)
select k.id, $2::integer, k.cap, $3::bigint, 0, $3::bigint from client k where k.id = $1 and k.deleted_at = 0
on conflict (client_id, day) do update set prev = g.used, asked = excluded.asked, cap = excluded.cap,
 used = g.used + excluded.asked
returning cap, prev, used;

insert into api_usage as g (client_id, day, cap, asked, prev, used)
select k.id, u.d, k.cap, u.n, 0, case when k.cap is null or k.cap > u.n then u.n else k.cap end
from unnest($1::bigint[], $2::integer[], $3::bigint[]) as u(c, d, n) join client k on k.id = u.c where k.deleted_at = 0
on conflict (client_id, day) do update set prev = g.used, asked = excluded.asked, cap = excluded.cap,
 used = case when excluded.cap is null or g.used + excluded.asked <= excluded.cap then g.used + excluded.asked
  when g.used > excluded.cap then g.used else excluded.cap end
returning client_id, day, cap, prev, used;

insert into blacklist (client_id, phone, id, reason, added_at) values ($1, $2, $3, $4, $5)
 on conflict (client_id, phone) do nothing;

insert into client (id, partner_id, name, email, phone, type, profile, refill, refill_to, refill_at,
 credits, cap, expires_on, expires_at, zone, region, closed, suspended, features, created_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20);

insert into credit_entry (client_id, at, kind, amount)
 select u.c, $1::bigint, $2::text, u.n from unnest($3::bigint[], $4::bigint[]) as u(c, n) where u.n <> 0;

insert into event (client_id, message_id, at, kind, detail)
 select u.c, u.i, $1::bigint, u.k, u.d from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) as u(c, i, k, d);

insert into idempotency (client_id, scope, key, hash, at)
select u.c, u.s, u.k, u.h, $1::bigint from unnest($2::bigint[], $3::text[], $4::text[], $5::text[]) as u(c, s, k, h) where true
on conflict (client_id, scope, key) do nothing returning client_id, scope, key;

insert into idempotency (client_id, scope, key, hash, at) values ($1, $2, $3, $4, $5)
 on conflict (client_id, scope, key) do nothing;

insert into login (id, partner_id, client_id, email, password, created_at)
 values ($1, $2, $3, $4, $5, $6);

insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone)
select u.c, u.i, u.s, u.r, u.w, u.d, u.d, u.v, u.t, u.o, u.p
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::smallint[], $9::smallint[], $10::text[]) as u(c, i, s, r, w, d, v, t, o, p);

insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, resent_from)
select m.client_id, u.n, u.s, m.run_id, u.w, u.d, u.d, u.v, m.step, m.origin, m.phone, m.id
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) as u(c, i, n, s, w, d, v) join message m on m.client_id = u.c and m.id = u.i;

insert into node (id, lease_until) values ($1, (extract(epoch from clock_timestamp()) * 1000000)::bigint + $2::bigint);

insert into partner (id, name, slug, created_at) values ($1, $2, $3, $4);

insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request,
 client_name, sequence_name, content)
select u.c, u.i, u.q, u.s, u.p, u.o, u.m, u.n, u.z, u.r, u.b, u.cn, u.sn, u.t
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::smallint[], $7::smallint[], $8::text[], $9::text[], $10::bigint[], $11::bytea[], $12::text[], $13::text[], $14::text[]) as u(c, i, q, s, p, o, m, n, z, r, b, cn, sn, t);

insert into sandbox_message as g (client_id, message_id, connector_id, phone, content, received_at, copies)
select u.c, u.m, u.k, u.p, u.t, u.a, u.n from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[]) as u(c, m, k, p, t, a, n) where true
on conflict (client_id, connector_id) do update set copies = g.copies + excluded.copies;

insert into sequence (client_id, id, name, session_id, if_running, stop_on_reply, steps,
 created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

insert into session (client_id, id, name, type, sandbox, is_default, per_min, start_sequence,
 stop_sequence, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

insert into template (client_id, id, name, text, media, media_name, latitude, longitude, created_at, updated_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

select c.id, c.partner_id, c.name, c.email, c.phone, c.type, c.profile, c.refill, c.refill_to, c.refill_at,
 c.credits, c.cap, c.expires_on, c.expires_at, c.zone, c.region, c.closed, c.suspended, c.features, c.created_at,
 coalesce((select s.type from session s where s.client_id = c.id and s.is_default = 1 and s.deleted_at = 0), '') from client c
 where c.partner_id = $1 and c.id > $2 and c.deleted_at = 0 order by c.id limit $3;

select c.id, c.partner_id, c.name, c.email, c.phone, c.type, c.profile, c.refill, c.refill_to, c.refill_at,
 c.credits, c.cap, c.expires_on, c.expires_at, c.zone, c.region, c.closed, c.suspended, c.features, c.created_at,
 coalesce((select s.type from session s where s.client_id = c.id and s.is_default = 1 and s.deleted_at = 0), '') from client c
 where c.refill_at > 0 and c.refill_at <= $1 and c.deleted_at = 0 and c.id > $2 order by c.id limit $3;

select c.id, c.partner_id, c.name, c.email, c.phone, c.type, c.profile, c.refill, c.refill_to, c.refill_at,
 c.credits, c.cap, c.expires_on, c.expires_at, c.zone, c.region, c.closed, c.suspended, c.features, c.created_at,
 coalesce((select s.type from session s where s.client_id = c.id and s.is_default = 1 and s.deleted_at = 0), '') from client c where c.partner_id = $1 and c.id = $2 and c.deleted_at = 0;

select c.id, c.partner_id, c.name, c.email, c.phone, c.type, c.profile, c.refill, c.refill_to, c.refill_at,
 c.credits, c.cap, c.expires_on, c.expires_at, c.zone, c.region, c.closed, c.suspended, c.features, c.created_at,
 coalesce((select s.type from session s where s.client_id = c.id and s.is_default = 1 and s.deleted_at = 0), '') from unnest($2::bigint[]) as u(i) join client c on c.id = u.i
 where c.partner_id = $1 and c.deleted_at = 0;

select client_id, scope, key from idempotency where at < $1 order by at limit $2;

select count(*) from (
select m.client_id, m.id, m.intent from session s cross join message m cross join run r
where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1
 and r.client_id = m.client_id and r.id = m.run_id and r.sequence_id = $2) as pending;

select count(*) from message where client_id + 0 = $1 and session_id = $2 and state = 0;

select g.client_id from unnest($1::bigint[], $2::integer[]) as u(c, d) join api_usage g
 on g.client_id = u.c and g.day = u.d order by g.client_id, g.day for update of g;

select g.client_id, g.day from client c cross join lateral (
 select * from api_usage o where o.client_id = c.id and o.day < $1 order by o.day limit $2) g limit $2;

select hash, result from idempotency where client_id = $1 and scope = $2 and key = $3;

select i.client_id from unnest($1::bigint[], $2::text[], $3::text[]) as u(c, s, k) join idempotency i
 on i.client_id = u.c and i.scope = u.s and i.key = u.k order by i.client_id, i.scope, i.key for update of i;

select i.client_id, i.scope, i.key, i.hash, i.result
from unnest($1::bigint[], $2::text[], $3::text[]) as u(c, s, k) join idempotency i on i.client_id = u.c and i.scope = u.s and i.key = u.k;

select id from client where id = $1 and deleted_at = 0 for update;

select id from client where partner_id = $1 and id = $2 and deleted_at = 0 for update;

select id from node where id = $1 and lease_until > (extract(epoch from clock_timestamp()) * 1000000)::bigint for key share;

select id from node where lease_until > (extract(epoch from clock_timestamp()) * 1000000)::bigint order by id;

select id from partner where id = $1;

select id from run where client_id = $1 and id = $2;

select id from sequence where client_id = $1 and id = $2;

select id from sequence where client_id = $1 and id = $2 and deleted_at = 0 for update;

select id from sequence where client_id = $1 and id in ($2, $3) and deleted_at = 0 order by id for update;

select id from session where client_id = $1 and id = $2 and deleted_at = 0 for key share;

select id, is_default from session where client_id = $1 and deleted_at = 0 order by id for update;

select id, phone, reason, added_at from blacklist
 where client_id = $1 and id > $2 and id > 0 order by id limit $3;

select intent from message where client_id = $1 and id = $2 for update;

select k.id, k.credits from unnest($1::bigint[]) as u(c) join client k on k.id = u.c order by k.id for no key update of k;

select k.id, k.deleted_at, k.suspended, k.expires_at, k.credits from unnest($1::bigint[]) as u(c) join client k on k.id = u.c;

select k.id, k.name, k.prefix, k.hash, k.created_at, k.expires_at from api_key k where k.partner_id = $1 and k.client_id = $2 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $3) order by k.id;

select k.id, k.partner_id from api_key k where k.client_id = 0 and k.hash = $1 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $2);

select k.id, k.partner_id, c.id, c.partner_id, c.name, c.email, c.phone, c.type, c.profile, c.refill, c.refill_to, c.refill_at,
 c.credits, c.cap, c.expires_on, c.expires_at, c.zone, c.region, c.closed, c.suspended, c.features, c.created_at,
 coalesce((select s.type from session s where s.client_id = c.id and s.is_default = 1 and s.deleted_at = 0), '') from api_key k
 join client c on c.id = k.client_id and c.partner_id = k.partner_id and c.deleted_at = 0 where k.hash = $1 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $2);

select m.client_id, m.id from message m
 where m.client_id + 0 = $1 and m.session_id = $2 and m.state = 0 and m.intent = 0 limit $3;

select m.client_id, m.id from message m
 where m.client_id + 0 = $1 and m.session_id = $2 and m.state = 0 limit $3;

select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.phone = $2 and r.sequence_id = $3
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent = 0
union all
select m.client_id, m.id from run r cross join message m
where r.client_id = $1 and r.phone = $2 and r.sequence_id = $3
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent = 0;

select m.client_id, m.id from session s cross join message m
where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1 and m.intent = 0;

select m.client_id, m.id from unnest($2::text[]) as u(p) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent = 0
union all
select m.client_id, m.id from unnest($2::text[]) as u(p) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent = 0;

select m.client_id, m.id, m.intent from session s cross join lateral (
 select * from message o where o.session_id = s.id and o.state = 0 and o.client_id + 0 = s.client_id and (o.intent = 0 or o.intent_at < $1) limit $2) m
where s.deleted_at <> 0 limit $2;

select m.client_id, m.id, m.intent from session s cross join message m cross join run r
where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1
 and r.client_id = m.client_id and r.id = m.run_id and r.sequence_id = $2 and m.intent = 0 limit $3;

select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content)
from unnest($2::bigint[]) as u(i) join message m on m.client_id = $1 and m.id = u.i
 join run r on r.client_id = m.client_id and r.id = m.run_id;

select m.client_id, m.id, m.session_id, m.run_id, m.step, m.phone, m.due_at, m.next_at, m.valid_until,
 m.intent, m.intent_at, m.attempt, m.repeats, m.generation from message m where m.session_id = $1 and m.state = 0 and m.next_at <= $2
 and m.valid_until <= $2 and m.intent = 0 order by m.valid_until, m.id limit $3;

select m.client_id, m.id, m.session_id, m.run_id, m.step, m.phone, m.due_at, m.next_at, m.valid_until,
 m.intent, m.intent_at, m.attempt, m.repeats, m.generation from unnest($2::bigint[]) as u(s) join message m on m.session_id = u.s and m.state = 0 and m.next_at <= $1
where m.intent_at > 0;

select m.client_id, m.id, m.session_id, m.run_id, m.step, m.phone, m.due_at, m.next_at, m.valid_until,
 m.intent, m.intent_at, m.attempt, m.repeats, m.generation from unnest($3::bigint[]) as u(s) cross join lateral (
 select * from message o where o.session_id = u.s and o.state = 0 and o.next_at <= $1 order by o.next_at, o.id limit $2) m;

select m.id, m.outcome, m.state, m.reason, m.done_at from message m
where m.client_id = $1 and m.outcome <> 0 and m.done_at >= $2 and m.done_at < $3 and (m.done_at > $4 or m.done_at = $4 and m.id > $5)
order by m.done_at, m.id limit $6;

select message.client_id, message.id, message.intent, message.next_at > message.intent_at from unnest($1::bigint[], $2::bigint[]) as u(c, i)
 join message on message.client_id = u.c and message.id = u.i where message.intent >= 0
 order by message.client_id, message.id for update of message;

select message.client_id, message.id, message.intent, message.state, message.reason, message.credit
from unnest($1::bigint[], $2::bigint[]) as u(c, i) join message on message.client_id = u.c and message.id = u.i
order by message.client_id, message.id for update of message;

select message.id from unnest($1::bigint[], $2::bigint[]) as u(c, i)
 join message on message.client_id = u.c and message.id = u.i order by message.client_id, message.id for update of message;

select message.id from unnest($1::bigint[], $2::bigint[]) as u(c, i) join message on message.client_id = u.c and message.id = u.i;

select message.id, message.run_id, message.intent, message.state, coalesce(
 (select s.id from session s where s.client_id = message.client_id and s.id = message.session_id and s.deleted_at = 0),
 (select s.id from session s where s.client_id = message.client_id and s.is_default = 1 and s.deleted_at = 0), 0)
from unnest($1::bigint[], $2::bigint[]) as u(c, i) join message on message.client_id = u.c and message.id = u.i
order by message.client_id, message.id for update of message;

select name from template where client_id = $1 and id = $2 for update;

select q.id, q.name, q.session_id, q.if_running, q.stop_on_reply, q.steps, q.created_at, q.updated_at from sequence q
 where q.client_id = $1 and q.id = $2 and q.deleted_at = 0;

select q.id, q.name, q.session_id, q.if_running, q.stop_on_reply, q.steps, q.created_at, q.updated_at from sequence q
 where q.client_id = $1 and q.id > $2 and q.deleted_at = 0 order by q.id limit $3;

select q.id, q.name, q.session_id, q.if_running, q.stop_on_reply, q.steps, q.created_at, q.updated_at, s.id, s.client_id, s.name, s.type, s.sandbox, s.is_default, s.per_min, s.start_sequence,
 s.stop_sequence, s.created_at, s.owner from sequence q
 join session s on s.client_id = q.client_id and s.deleted_at = 0
  and (s.id = q.session_id or q.session_id = 0 and s.is_default = 1)
 where q.client_id = $1 and q.id = $2 and q.deleted_at = 0;

select q.steps from sequence q where q.client_id = $1 and q.deleted_at = 0 and q.steps like '%"template":%';

select r.client_id, r.id, r.zone, r.content from unnest($1::bigint[], $2::bigint[]) as u(c, i) join run r on r.client_id = u.c and r.id = u.i;

select r.id, r.content, null from unnest($2::bigint[]) as u(i) join run r on r.client_id = $1 and r.id = u.i
 where r.content like '%"window":%';

select r.id, r.content, r.request from unnest($2::bigint[]) as u(i) join run r on r.client_id = $1 and r.id = u.i;

select s.id, s.client_id, s.name, s.type, s.sandbox, s.is_default, s.per_min, s.start_sequence,
 s.stop_sequence, s.created_at, s.owner from session s
 where s.client_id = $1 and s.id = $2 and s.deleted_at = 0;

select s.id, s.client_id, s.name, s.type, s.sandbox, s.is_default, s.per_min, s.start_sequence,
 s.stop_sequence, s.created_at, s.owner from session s
 where s.client_id = $1 and s.id > $2 and s.deleted_at = 0 order by s.id limit $3;

select s.id, s.client_id, s.name, s.type, s.sandbox, s.is_default, s.per_min, s.start_sequence,
 s.stop_sequence, s.created_at, s.owner from session s join client k on k.id = s.client_id and k.deleted_at = 0
 where s.deleted_at = 0 and s.owner in (0, $1) order by s.id;

select s.id, s.is_default from unnest($2::bigint[]) as u(i) join session s on s.client_id = $1 and s.id = u.i
 where s.deleted_at = 0 order by s.id for update of s;

select seq, client_id, message_id, connector_id, phone, content, received_at, copies
 from sandbox_message where client_id = $1 and seq > $2 order by seq limit $3;

select t.id, t.name, t.text, t.media, t.media_name, t.latitude, t.longitude, t.created_at, t.updated_at from template t
 where t.client_id = $1 and t.id > $2 order by t.id limit $3;

select t.id, t.name, t.text, t.media, t.media_name, t.latitude, t.longitude, t.created_at, t.updated_at from template t where t.client_id = $1 and t.id = $2;

select t.id, t.name, t.text, t.media, t.media_name, t.latitude, t.longitude, t.created_at, t.updated_at from unnest($2::text[]) as u(n) join template t on t.client_id = $1 and t.name = u.n;

select t.name from unnest($2::text[]) as u(n) join template t on t.client_id = $1 and t.name = u.n order by t.id for update of t;

select u.i, m.id from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as u(c, i, r) join message m
 on m.client_id = u.c and m.run_id = u.r and m.resent_from <> 0 and m.resent_from = u.i;

select u.n, m.client_id, m.id, m.intent from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[]) as u(n, c, p, q) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and r.sequence_id = u.q
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select u.n, m.client_id, m.id, m.intent from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[]) as u(n, c, p, q) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and r.sequence_id = u.q
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0;

select x.n, x.q, x.s from (
 select u.n,
  u.q = 0 or exists (select 1 from sequence q where q.client_id = u.c and q.id = u.q and q.deleted_at = 0) as q,
  exists (select 1 from session s where s.client_id = u.c and s.id = u.s and s.deleted_at = 0) as s
 from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as u(n, c, q, s)) x
where not (x.q and x.s);

update api_key as k set expires_at = case when k.expires_at = 0 or k.expires_at > $5 then $5::bigint
 else k.expires_at end where k.id = $4 and k.partner_id = $1 and k.client_id = $2 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $3);

update api_key as k set revoked_at = $3::bigint where k.id = $4 and k.partner_id = $1 and k.client_id = $2 and k.revoked_at = 0 and (k.expires_at = 0 or k.expires_at > $3);

update api_key set expires_at = case when expires_at = 0 or expires_at > $2 then $2::bigint
 else expires_at end where hash = $1 and revoked_at = 0 and (expires_at = 0 or expires_at > $3)
 returning partner_id, client_id;

update api_key set revoked_at = $2 where client_id = $1 and revoked_at = 0;

update api_usage set used = used - u.n from unnest($1::bigint[], $2::integer[], $3::bigint[]) as u(c, d, n)
 where api_usage.client_id = u.c and api_usage.day = u.d;

update client set credits = $2, refill_at = $3 where id = $1;

update client set credits = client.credits + u.n from unnest($1::bigint[], $2::bigint[]) as u(c, n)
 where client.id = u.c and client.credits is not null returning client.id;

update client set credits = client.credits - u.n from unnest($1::bigint[], $2::bigint[]) as u(c, n)
 where client.id = u.c and u.n > 0;

update client set deleted_at = $2 where id = $1;

update client set name = $2, phone = $3, profile = $4, refill = $5, refill_to = $6, refill_at = $7,
 credits = $8, cap = $9, expires_on = $10, expires_at = $11, zone = $12, region = $13, closed = $14, suspended = $15, features = $16
 where id = $1;

update counter set next = next + 1 where noun = $1 returning next;

update id_block set next = greatest(next, (extract(epoch from clock_timestamp()) * 1000000)::bigint - 1767225600000000) + $1::bigint where one = 1 returning next;

update idempotency set result = $4 where client_id = $1 and scope = $2 and key = $3;

update idempotency set result = u.r from unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[]) as u(c, s, k, r)
 where idempotency.client_id = u.c and idempotency.scope = u.s and idempotency.key = u.k;

update message set credit = 1 from unnest($1::bigint[], $2::bigint[]) as u(c, i)
 where message.client_id = u.c and message.id = u.i;

update message set intent = $1::bigint, attempt = message.attempt + 1,
 repeats = message.repeats + case when u.x > 0 then 1 else 0 end,
 intent_at = case when u.x > 0 then message.intent_at else $2::bigint end,
 credit = case when u.x > 0 then message.credit else u.k end
from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::smallint[], $7::bigint[]) as u(c, i, x, k, s)
where message.client_id = u.c and message.id = u.i and message.intent = u.x
 and (u.s = 0 or message.session_id = u.s)
 and message.next_at <= $2 and message.valid_until > $2
returning message.client_id, message.id, message.due_at,
 exists (select 1 from blacklist b where b.client_id = message.client_id and b.phone = message.phone);

update message set intent = -1, state = 2, outcome = 2, done_at = $1::bigint, reason = u.r,
 detail = case when u.d = '' then message.detail else u.d end,
 next_at = case when message.intent > 0 and message.next_at > message.intent_at then message.intent_at else message.next_at end
from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[]) as u(c, i, x, r, d)
where message.client_id = u.c and message.id = u.i and message.intent = u.x;

update message set intent = -1, state = 3, done_at = $1::bigint
from unnest($2::bigint[], $3::bigint[]) as u(c, i)
where message.client_id = u.c and message.id = u.i and message.intent = 0
returning message.id, message.desired_at, message.next_at;

update message set intent = -1, state = 4, outcome = 2, done_at = $1::bigint, attempt = message.attempt - 1,
 credit = 0 from unnest($3::bigint[], $4::bigint[]) as u(c, i) where message.client_id = u.c and message.id = u.i and message.intent = $2;

update message set intent = -1, state = 5,
 done_at = case when message.outcome = 0 then $1::bigint else message.done_at end,
 reason = case when message.reason <> '' then message.reason when message.state = 4 then $2::text when message.state = 2 then $3::text else '' end
from unnest($4::bigint[], $5::bigint[]) as u(c, i)
where message.client_id = u.c and message.id = u.i and message.intent <= 0 and message.state in (0, 2, 3, 4);

update message set intent = -1, state = case when message.state = 5 then 5 else 1 end, outcome = 1, done_at = $1::bigint, reason = u.r, detail = u.d,
 next_at = case when message.intent_at > 0 and message.next_at > message.intent_at then message.intent_at else message.next_at end
from unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) as u(c, i, r, d) where message.client_id = u.c and message.id = u.i;

update message set intent = -1, state = u.s, outcome = u.s, done_at = $1::bigint, reason = u.r, detail = u.d,
 credit = case when u.s = 1 then message.credit else -message.credit end,
 next_at = case when message.next_at > message.intent_at then message.intent_at else message.next_at end
from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[], $7::text[]) as u(c, i, t, s, r, d)
where message.client_id = u.c and message.id = u.i and message.intent = u.t
returning message.client_id, message.id, message.credit;

update message set intent = 0, attempt = message.attempt - 1, credit = 0,
 intent_at = case when message.attempt > 1 then message.intent_at else 0 end
 from unnest($2::bigint[], $3::bigint[]) as u(c, i) where message.client_id = u.c and message.id = u.i and message.intent = $1;

update message set intent = case when u.k = 1 then 0 else message.intent end, next_at = u.n, detail = u.d,
 credit = case when u.k = 1 then -message.credit else message.credit end,
 attempt = message.attempt - u.f
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::integer[], $6::bigint[], $7::text[]) as u(c, i, t, k, f, n, d)
where message.client_id = u.c and message.id = u.i and message.intent = u.t
returning message.client_id, message.id, message.credit;

update message set next_at = u.n, detail = case when u.d = '' then message.detail else u.d end
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) as u(c, i, x, n, d)
where message.client_id = u.c and message.id = u.i and message.intent = u.x;

update message set session_id = $1::bigint from unnest($2::bigint[], $3::bigint[]) as u(c, i)
where message.client_id = u.c and message.id = u.i and message.intent = 0;

update node set lease_until = (extract(epoch from clock_timestamp()) * 1000000)::bigint + $2::bigint where id = $1;

update sequence set deleted_at = $3 where client_id = $1 and id = $2;

update sequence set name = $3, session_id = $4, if_running = $5, stop_on_reply = $6,
 steps = $7, updated_at = $8 where client_id = $1 and id = $2 and deleted_at = 0;

update sequence set session_id = $3 where client_id = $1 and session_id = $2;

update session set deleted_at = $2, owner = 0 where client_id = $1 and deleted_at = 0;

update session set deleted_at = $3, owner = 0 where client_id = $1 and id = $2;

update session set owner = $1::bigint from unnest($3::bigint[]) as u(s)
 where session.id = u.s and session.owner = $2 and session.deleted_at = 0 returning session.id;

update session set owner = 0 where id in (select s.id from session s
 where s.owner <> 0 and s.deleted_at = 0 and not exists (select 1 from node n where n.id = s.owner)
 order by s.id for no key update of s skip locked);

update session set owner = 0 where owner = $1;

update session set start_sequence = $3, stop_sequence = $4 where client_id = $1 and id = $2 and deleted_at = 0;

update session set start_sequence = case when start_sequence = $2 then 0 else start_sequence end,
 stop_sequence = case when stop_sequence = $2 then 0 else stop_sequence end
 where client_id = $1 and $2 in (start_sequence, stop_sequence) and deleted_at = 0;

update template set name = $3, text = $4, media = $5, media_name = $6, latitude = $7, longitude = $8,
 updated_at = $9 where client_id = $1 and id = $2;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end < $4 offset 0) as m where r.client_id = $1 and r.id < $2
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end < $4 and r.id = m.run_id
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end >= $4 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end < $5 offset 0) as m where r.client_id = $1 and r.id < $2
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end >= $4 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end < $5 and r.id = m.run_id
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end >= $4 offset 0) as m where r.client_id = $1 and r.id < $2
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end >= $4 and r.id = m.run_id
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 and m.origin + 0 = $4 offset 0) as m where r.client_id = $1 and r.id < $2
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and m.origin + 0 = $4 and r.id = m.run_id
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 and m.state + 0 = $4 offset 0) as m where r.client_id = $1 and r.id < $2
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and m.state + 0 = $4 and r.id = m.run_id
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 offset 0) as m where r.client_id = $1 and r.id < $2
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and r.id = m.run_id
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 offset 0) as m where r.client_id = $1 and r.id < $2 and r.phone = $4
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from run r cross join message m
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and r.id = m.run_id and r.phone = $4
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 offset 0) as m where r.client_id = $1 and r.id < $2 and r.sequence_id = $4
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and r.id = m.run_id and r.sequence_id = $4
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select i from (select m.id as i from run r cross join lateral (select m.id from message m where m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2 offset 0) as m where r.client_id = $1 and r.id < $2 and r.sequence_id = $4 and r.phone = $5
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from run r cross join message m
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2 and r.id = m.run_id and r.sequence_id = $4 and r.phone = $5
 order by m.id desc limit $3) as resent
order by i desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select m.id as i from session s cross join message m cross join run r
 where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1 and m.id < $2
  and r.client_id = m.client_id and r.id = m.run_id
 order by m.id desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select m.id as i from session s cross join message m cross join run r
 where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1 and m.id < $2
  and r.client_id = m.client_id and r.id = m.run_id and r.sequence_id = $4 and r.phone = $5
 order by m.id desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;

with f as (select m.id as i from session s cross join message m cross join run r
 where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1 and m.id < $2 and m.origin + 0 = $4
  and r.client_id = m.client_id and r.id = m.run_id
 order by m.id desc limit $3) select m.client_id, m.id, m.session_id, m.run_id, m.step, m.origin, m.phone, m.desired_at, m.due_at, m.next_at,
 m.valid_until, m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.state, m.done_at, m.reason, m.detail,
 m.resent_from, r.received_at, r.name, r.client_name, r.sequence_name, r.zone, octet_length(r.request), octet_length(r.content) from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc;
