package engine

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// statementCache keeps the prepared statements of a pool. database/sql prepares a statement on each connection that
// needs it.
type statementCache struct {
	mu sync.Mutex
	m  map[string]*sql.Stmt
}

func (s *statementCache) get(ctx context.Context, db *sql.DB, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	st := s.m[text]
	s.mu.Unlock()
	if st != nil {
		return st, nil
	}
	// Prepare without holding the lock, because preparing may wait for a free connection.
	st, err := db.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	tellPlan(ctx, text, db.QueryContext)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.m[text]; other != nil {
		return other, st.Close()
	}
	if s.m == nil {
		s.m = map[string]*sql.Stmt{}
	}
	s.m[text] = st
	return st, nil
}
