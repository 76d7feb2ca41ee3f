package store

import (
	"context"
	"fmt"

	"puntuale/internal/store/engine"
	"puntuale/internal/store/sealed"
)

func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	if _, err := engine.QueryOne(ctx, s.CallReads, `select value from secret where name = $1`, []any{name}, &value); err != nil {
		return nil, engine.PublicError(fmt.Errorf("read a secret: %w", err))
	}
	return value, nil
}

func (s *Store) SetSecret(ctx context.Context, name string, old, value []byte) (set bool, err error) {
	err = s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		text, args := `insert into secret (name, value) values ($1, $2) on conflict (name) do nothing`, []any{name, value}
		if old != nil {
			text, args = `update secret set value = $2 where name = $1 and value = $3`, append(args, old)
		}
		n, err := a.Exec(ctx, text, args...)
		set = n == 1
		return err
	}), false)
	return set, err
}

// SealAgain goes once through everything sealed, and seals again what does not begin with the id of the key. See
// [sealed.Again].
func (s *Store) SealAgain(ctx context.Context, id []byte, again func(purpose, place string, sealed []byte) ([]byte, error)) (count, lost int, err error) {
	done, err := sealed.Again(ctx, s.DB, sealed.Key{ID: id, Again: again})
	return done.Sealed, done.Lost, engine.PublicError(err)
}
