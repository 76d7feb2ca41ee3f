-- +goose Up

-- The same as on PostgreSQL; see there.

update result_client set place = -1, state = 0 where state = 1 and exists (select 1 from booking b where b.client_id = result_client.client_id);
insert into result_client (client_id, generation, shown, place) select k.id, 1, 1, -1 from client k where k.deleted_at = 0 and exists (select 1 from booking b where b.client_id = k.id)
 on conflict do nothing;
