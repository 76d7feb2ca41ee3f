-- +goose Up

-- Nodes of the version before may run meanwhile.
set local lock_timeout = '2s';

-- Bookings are counted from now on, like messages; those that there are, by the servers in the background.

insert into result_client (client_id, generation, shown, place) select k.id, 1, 1, -1 from client k where k.deleted_at = 0 and exists (select 1 from booking b where b.client_id = k.id)
 on conflict (client_id) do update set place = case when result_client.state = 1 then -1 else result_client.place end, state = case when result_client.state = 2 then 2 else 0 end;
