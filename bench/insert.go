package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

const (
	groupedInsert = "message rows inserted, 1,000 a statement"
	copyInsert    = "message rows by COPY, 10,000 at a time"
	riverInsert   = "River's InsertManyFast(1000), jobs"
)

// inserts measures how fast the product inserts message rows. It compares this rate with PostgreSQL's fastest way to
// insert, and with River.
func (b *bench) inserts(ctx context.Context) error {
	for _, engine := range b.engines() {
		if err := b.groupedInsert(ctx, engine); err != nil {
			return err
		}
	}
	if !b.onPostgres() {
		return nil
	}
	if err := b.copyInsert(ctx); err != nil || !b.comparesOthers() {
		return err
	}
	return b.riverInsert(ctx)
}

// groupedInsert inserts message rows with the product's statement. It commits after each statement.
func (b *bench) groupedInsert(ctx context.Context, engine string) error {
	f, err := b.fixture(ctx, engine, 0)
	if err != nil {
		return err
	}
	defer f.close()
	db, err := plain(engine, f.address)
	if err != nil {
		return err
	}
	defer db.Close()
	insert := insertPostgres
	if engine == sqlite {
		insert = insertSQLite
	}
	now := time.Now().UnixMicro()
	w, begun := b.watch(engine), time.Now()
	for first := 0; first < b.inserted; first += 1000 {
		if err := insert(ctx, db, first+1, f, now); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
	}
	b.sheet.note(onEngine(groupedInsert, engine), perSecond, float64(b.inserted)/time.Since(begun).Seconds())
	w.note(onEngine(groupedInsert, engine), b.inserted)
	return nil
}

const columns = `client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone`

func insertPostgres(ctx context.Context, db *sql.DB, first int, f *fixture, now int64) error {
	clients, ids, sessions, phones := make([]int64, 1000), make([]int64, 1000), make([]int64, 1000), make([]string, 1000)
	for i := range ids {
		c := f.clients[i%len(f.clients)]
		clients[i], ids[i], sessions[i], phones[i] = int64(c.id), int64(first+i), int64(c.session), fmt.Sprintf("+39347%07d", i)
	}
	_, err := db.ExecContext(ctx, `insert into message (`+columns+`) select c, i, s, i, 0, $5::bigint, $5, $5 + 86400000000, 0, 2, p
		from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) u(c, i, s, p)`, clients, ids, sessions, phones, now)
	return err
}

// insertSQLite uses one prepared statement in one transaction. It is the fastest simple way that we found.
func insertSQLite(ctx context.Context, db *sql.DB, first int, f *fixture, now int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.PrepareContext(ctx, `insert into message (`+columns+`) values ($1, $2, $3, $2, 0, $4, $4, $4 + 86400000000, 0, 2, $5)`)
	if err != nil {
		return err
	}
	for i := range 1000 {
		c := f.clients[i%len(f.clients)]
		if _, err := insert.ExecContext(ctx, int64(c.id), int64(first+i), int64(c.session), now, fmt.Sprintf("+39347%07d", i)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// copyInsert inserts the same rows into the same table with COPY.
func (b *bench) copyInsert(ctx context.Context) error {
	f, err := b.fixture(ctx, postgres, 0)
	if err != nil {
		return err
	}
	defer f.close()
	conn, err := pgx.Connect(ctx, f.address)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	now := time.Now().UnixMicro()
	names := []string{"client_id", "id", "session_id", "run_id", "desired_at", "due_at", "next_at", "valid_until", "step", "origin", "phone"}
	const part = 10_000
	w, begun := b.watch(postgres), time.Now()
	for first := 1; first <= b.inserted; first += part {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"message"}, names, pgx.CopyFromSlice(part, func(i int) ([]any, error) {
			c := f.clients[i%len(f.clients)]
			id := int64(first + i)
			return []any{int64(c.id), id, int64(c.session), id, int64(0), now, now, now + 86400000000, int16(0), int16(2), fmt.Sprintf("+39347%07d", i%1000)}, nil
		}))
		if err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	b.sheet.note(copyInsert, perSecond, float64(b.inserted)/time.Since(begun).Seconds())
	w.note(copyInsert, b.inserted)
	return nil
}

func (b *bench) riverInsert(ctx context.Context) error {
	r, err := b.newRiver(ctx, riverTuning{}, nil)
	if err != nil {
		return err
	}
	defer r.close()
	w, begun := b.watch(postgres), time.Now()
	if err := r.insert(ctx, b.inserted, 1000, func(int) *river.InsertOpts { return nil }); err != nil {
		return err
	}
	b.sheet.note(riverInsert, perSecond, float64(b.inserted)/time.Since(begun).Seconds())
	w.note(riverInsert, b.inserted)
	return nil
}
