package fleet

import (
	"context"
	"fmt"
	"time"

	"puntuale/internal/store/engine"
)

// ReportKeys stores which version of the keys a server process has read. Without a further report it counts as gone after
// the lease. id is a random name of the process; more words may follow it, for people.
func (s *Fleet) ReportKeys(ctx context.Context, id string, version int64, lease time.Duration) error {
	return s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from key_reader where until <= $clock and id <> $1`, id); err != nil {
			return fmt.Errorf("remove servers that are gone: %w", err)
		}
		_, err := a.Exec(ctx, `insert into key_reader (id, version, until) values ($1, $2, $clock + $3::bigint)
 on conflict (id) do update set version = excluded.version, until = excluded.until`, id, version, lease.Microseconds())
		return err
	})
}

// ForgetKeyReader removes a server process that stops.
func (s *Fleet) ForgetKeyReader(ctx context.Context, id string) error {
	return s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `delete from key_reader where id = $1`, id)
		return err
	})
}

// formerServers counts servers of versions before key_reader. On PostgreSQL it also counts connections, because a server
// that only answers calls has no lease.
const (
	formerServers     = `(select count(*) from node where lease_until > $clock and reads_keys = 0)`
	formerConnections = ` + (select count(*) from pg_stat_activity where datname = current_database() and application_name in ($2, $3, $4))`
)

// KeyReaders counts the servers that run and read their keys again, those of them that have not read the version yet, and
// the servers of a former version of the program, which cannot.
func (s *Fleet) KeyReaders(ctx context.Context, version int64) (running, behind, former int64, err error) {
	old, args := formerServers, []any{version}
	if s.Dialect.Postgres {
		old += formerConnections
		args = append(args, ServerName, ServerName+wakeupName, ServerName+listenName)
	}
	if _, err := engine.QueryOne(ctx, s.CallReads, `select count(*), coalesce(sum(case when version < $1 then 1 else 0 end), 0)::bigint, `+old+`
 from key_reader where until > $clock`, args, &running, &behind, &former); err != nil {
		return 0, 0, 0, engine.PublicError(fmt.Errorf("look for servers: %w", err))
	}
	return running, behind, former, nil
}
