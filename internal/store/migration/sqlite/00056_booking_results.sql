-- +goose Up

-- The same as on PostgreSQL; see there.

insert into result_client (client_id, generation, shown, place) select k.id, 1, 1, -1 from client k where k.deleted_at = 0 and exists (select 1 from booking b where b.client_id = k.id)
 on conflict (client_id) do update set place = case when result_client.state = 1 then -1 else result_client.place end, state = case when result_client.state = 2 then 2 else 0 end;
