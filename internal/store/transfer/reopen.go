package transfer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
)

// A final export sets the moved mark, so that the installation and its copy never both send. The mark is on disk before
// the export reads anything. No server writes after the mark, so the copy contains everything that was accepted:
//
//   - On SQLite, all users of the file share a lock, and a final export takes this lock exclusively. Each user checks the
//     mark when it opens the file.
//   - On PostgreSQL, a final export sees the connections of servers. It does not see a server that has just lost its
//     connections and may connect again. So each new connection of a writer checks the mark first.

// Codes of the faults that functions in this file return.
const (
	faultStoreConnectionOpen  puntuale.ReasonCode = "store.connection_open"
	faultStoreConnectionsOpen puntuale.ReasonCode = "store.connections_open"
	faultStoreServerSends     puntuale.ReasonCode = "store.server_sends"
	faultStoreServersRun      puntuale.ReasonCode = "store.servers_run"
	faultStoreServersSend     puntuale.ReasonCode = "store.servers_send"
)

// markMoved sets the moved mark, so that no server starts on the installation. It returns an error if a server runs. If
// the mark is already set, undo does not remove it. The caller has locked the file.
func (s *installation) markMoved(ctx context.Context, now time.Time) (undo func(context.Context) error, err error) {
	fresh := false
	if err := s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `insert into moved (one, at) values (1, $1) on conflict (one) do nothing`, engine.Micros(now))
		fresh = n > 0
		return err
	}); err != nil {
		return nil, fmt.Errorf("mark the installation as moved: %w", err)
	}
	undo = func(ctx context.Context) error {
		if !fresh {
			return nil
		}
		return s.unmark(ctx)
	}
	if err := s.refuseServers(ctx); err != nil {
		return nil, errors.Join(err, undo(ctx))
	}
	return undo, nil
}

func (s *installation) unmark(ctx context.Context) error {
	if err := s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `delete from moved`)
		return err
	}); err != nil {
		return fmt.Errorf("take the mark of the move away: %w", err)
	}
	return nil
}

// serversThere counts the leases and the connections of servers. Both counts are needed, because a server that only
// answers calls has no lease.
const serversThere = `
select (select count(*) from node where lease_until > $clock),
 (select count(*) from pg_stat_activity where datname = current_database() and application_name like $1 || '%')`

// refuseServers returns an error if a server uses a PostgreSQL database. On SQLite, HoldFile does this. Codes:
// conflict.
func (s *installation) refuseServers(ctx context.Context) error {
	if !s.Dialect.Postgres {
		return nil
	}
	for try := 1; ; try++ {
		var nodes, connections int64
		if _, err := engine.QueryOne(ctx, s.CallReads, serversThere, []any{fleet.ServerName}, &nodes, &connections); err != nil {
			return fmt.Errorf("look for servers: %w", err)
		}
		switch {
		case nodes+connections == 0:
			return nil
		case try == serverTries:
			return serversRun(nodes, connections)
		}
		if err := clock.System().Sleep(ctx, serverPause); err != nil {
			return fmt.Errorf("wait for servers: %w", err)
		}
	}
}

// serversRun returns the error that says what uses an installation.
func serversRun(nodes, connections int64) error {
	send := puntuale.Because(faultStoreServersSend, strconv.FormatInt(nodes, 10))
	open := puntuale.Because(faultStoreConnectionsOpen, strconv.FormatInt(connections, 10))
	if nodes == 1 {
		send = puntuale.Because(faultStoreServerSends)
	}
	if connections == 1 {
		open = puntuale.Because(faultStoreConnectionOpen)
	}
	return puntuale.Conflict(faultStoreServersRun, send.Stored(), open.Stored())
}

// The check is repeated, because the database may not have noticed yet that a process has just ended.
const (
	serverTries = 5
	serverPause = 200 * time.Millisecond
)

// Reopen removes the moved mark of a final export, so that servers can start again. It reports whether the mark was
// set. The imported copy must not have sent anything. Otherwise the open messages in this installation would be sent a
// second time. Codes: conflict (a SQLite file is being exported).
func Reopen(ctx context.Context, cfg engine.Config) (reopened bool, err error) {
	cfg.NoMigrate = true
	s, err := openInstallation(ctx, cfg, engine.Options{Name: moverName, Shared: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	at, err := fleet.MovedAt(ctx, s.CallReads)
	if err != nil || at.IsZero() {
		return false, engine.PublicError(err)
	}
	return true, s.unmark(ctx)
}

// moverName is the name that PostgreSQL shows for connections that move an installation.
const moverName = "moving puntuale"
