package fleet

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Overview describes the installation for the operator's page.
type Overview struct {
	Nodes    []NodeLease
	Servers  []string // the ids of all server processes, with which they report the keys; see [Fleet.ReportKeys]
	Sessions []SessionCount
}

// NodeLease is a node that sends, or did until its lease ended.
type NodeLease struct {
	Node puntuale.NodeID
	Left time.Duration // how long the lease lasts, by the database's clock; negative: it has ended
	Owns int           // sessions that the node owns
}

// SessionCount counts the sessions of all clients with the same type and state.
type SessionCount struct {
	Type    puntuale.ConnectionType
	Sandbox bool
	State   string // the state's name in the API
	Count   int
}

// Overview reads the nodes and servers, and counts the sessions of the whole installation.
func (s *Fleet) Overview(ctx context.Context) (o Overview, err error) {
	o.Nodes, err = engine.QueryAll(ctx, s.MaintenanceReads, `select n.id, n.lease_until - $clock, (select count(*) from session s where s.owner = n.id and s.deleted_at = 0) from node n order by n.id`,
		nil, func(r engine.Row, n *NodeLease) error {
			var left int64
			err := r.Scan(&n.Node, &left, &n.Owns)
			n.Left = time.Duration(left) * time.Microsecond
			return err
		})
	if err != nil {
		return o, engine.PublicError(fmt.Errorf("read the nodes: %w", err))
	}
	o.Servers, err = engine.QueryAll(ctx, s.MaintenanceReads, `select id from key_reader where until > $clock order by id limit 1000`, nil, engine.ScanOne[string])
	if err != nil {
		return o, engine.PublicError(fmt.Errorf("read the servers: %w", err))
	}
	o.Sessions, err = engine.QueryAll(ctx, s.MaintenanceReads, `select s.type, s.sandbox, s.link, s.link_condition, count(*) from session s join client k on k.id = s.client_id and k.deleted_at = 0
 where s.deleted_at = 0 and s.way = '' group by s.type, s.sandbox, s.link, s.link_condition order by s.type, s.sandbox, s.link, s.link_condition`,
		nil, func(r engine.Row, c *SessionCount) error {
			var l puntuale.Session
			err := r.Scan(&c.Type, engine.ScanBool(&c.Sandbox), &l.Link.State, &l.Link.Condition, &c.Count)
			l.Sandbox = c.Sandbox
			c.State = puntuale.Link{State: l.LinkOf(), Condition: l.Link.Condition}.Word()
			return err
		})
	if err != nil {
		return o, engine.PublicError(fmt.Errorf("count the sessions: %w", err))
	}
	return o, nil
}
