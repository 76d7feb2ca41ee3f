package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// stockKey identifies a database that is made once and copied for each measurement.
type stockKey struct {
	engine  string
	pending int
}

type stocked struct {
	benchDatabase
	clients []client
}

// stocked returns the database for the key. It makes the database if there is none yet.
func (b *bench) stocked(ctx context.Context, engine string, pending int) (stocked, error) {
	key := stockKey{engine, pending}
	if s, ok := b.stock[key]; ok {
		return s, nil
	}
	p, err := b.newDatabase(ctx, engine, nil)
	if err != nil {
		return stocked{}, err
	}
	s := stocked{benchDatabase: p}
	b.stock[key] = s // the bench drops the database at its end, also after an error
	opened, err := p.open(ctx)
	if err != nil {
		return s, err
	}
	s.clients, err = populate(ctx, opened)
	if closed := opened.Close(); err == nil {
		err = closed
	}
	if err == nil && pending > 0 {
		err = s.fill(ctx, pending)
	}
	if err != nil {
		return s, fmt.Errorf("fill a database with %d messages: %w", pending, err)
	}
	b.stock[key] = s
	return s, nil
}

// load describes messages to insert without the product, in the form in which the product would write them.
type load struct {
	first, n int   // the id of the first message, and the number of messages
	steps    int   // how many messages each run has
	due      int64 // due time of the first message, in microseconds
	every    int64 // microseconds between the due times of two messages
	scatter  int64 // if not 0, due times are spread over this many microseconds instead
	left     bool  // the messages left at their due times
}

// fill inserts the pending messages, with due times in the 30 days after tomorrow. It also inserts a quarter as many
// sent messages, with due times in the 30 days before today.
func (s *stocked) fill(ctx context.Context, pending int) error {
	db, err := plain(s.engine, s.address)
	if err != nil {
		return err
	}
	defer db.Close()
	now, month := time.Now().UnixMicro(), (30 * 24 * time.Hour).Microseconds()
	day := (24 * time.Hour).Microseconds()
	for _, l := range []load{
		{first: 1, n: leftBeside(pending), steps: 3, due: now - day - month, scatter: month, left: true},
		{first: firstPending(pending), n: pending, steps: 3, due: now + day, scatter: month},
	} {
		if err := s.put(ctx, db, l); err != nil {
			return err
		}
	}
	return s.tidy(ctx, db)
}

// collectStatistics makes PostgreSQL collect statistics about new rows, as its autovacuum would do later. SQLite collects
// statistics only on demand. The service never asks for statistics, because with statistics SQLite parses many prepared
// statements again at each execution.
func collectStatistics(ctx context.Context, db *sql.DB, engine string) error {
	if engine == sqlite {
		return nil
	}
	if _, err := db.ExecContext(ctx, "analyze"); err != nil {
		return fmt.Errorf("analyze: %w", err)
	}
	return nil
}

// leftBeside returns how many messages were sent long ago in a database with the given number of pending messages.
// firstPending returns the id of the first pending message.
func leftBeside(pending int) int   { return pending / 12 * 3 }
func firstPending(pending int) int { return 1 + leftBeside(pending) }

// tidy makes the database like one in normal use: PostgreSQL has statistics, and no data is unwritten.
func (s *stocked) tidy(ctx context.Context, db *sql.DB) error {
	statements := []string{"vacuum analyze", "checkpoint"}
	if s.engine == sqlite {
		statements = []string{"pragma wal_checkpoint(truncate)"}
	}
	for _, text := range statements {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// put inserts runs and messages. The ids of a run's messages are consecutive. The runs belong to the clients in
// round-robin order.
func (s *stocked) put(ctx context.Context, db *sql.DB, l load) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if s.engine == sqlite { // without this, SQLite would read and write the index's pages many times
		if _, err := conn.ExecContext(ctx, "pragma cache_size = -1048576"); err != nil {
			return err
		}
	}
	if err := s.clientTable(ctx, conn); err != nil {
		return err
	}
	const part = 480_000 // rows for each statement; a multiple of the messages of a run
	for done := 0; done < l.n; done += part {
		next := l
		next.n = min(part, l.n-done)
		if _, err := conn.ExecContext(ctx, next.sql(s.engine, runColumns, done)); err != nil {
			return fmt.Errorf("insert runs: %w", err)
		}
		if _, err := conn.ExecContext(ctx, next.sql(s.engine, messageColumns, done)); err != nil {
			return fmt.Errorf("insert messages: %w", err)
		}
	}
	return nil
}

// clientTable makes a table of the clients, which the statements use.
func (s *stocked) clientTable(ctx context.Context, conn *sql.Conn) error {
	var rows []string
	for i, c := range s.clients {
		rows = append(rows, fmt.Sprintf("(%d, %d, %d, %d)", i, c.id, c.session, c.sequence))
	}
	for _, text := range []string{
		"drop table if exists bench_client",
		"create temporary table bench_client (n bigint primary key, client bigint, session bigint, sequence bigint)",
		"insert into bench_client values " + strings.Join(rows, ", "),
	} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("list the clients: %w", err)
		}
	}
	return nil
}

const (
	runColumns = `insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
select c.client, $first + i, c.sequence, c.session, '+39347' || substr(cast(10000000 + i / $steps as text), 2), 2, $steps, '', 'Europe/Rome', $due, $request, 'Bench', 'Promemoria', '$content'
from $series join bench_client c on c.n = (i / $steps) % $clients where i % $steps = 0`

	messageColumns = `insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, intent, intent_at, done_at, attempt, state, outcome)
select client, id, session, run, 0, due, due, due + 86400000000, step, 2, phone, $intent, $at, $done, $left, $left, $left from (
select c.client, $first + i as id, c.session, $first + i - i % $steps as run, $moment as due, i % $steps as step,
 '+39347' || substr(cast(10000000 + i / $steps as text), 2) as phone
from $series join bench_client c on c.n = (i / $steps) % $clients) as planned`
)

// sql fills the placeholders of the statement in the argument text. The statement leaves out the first rows. The
// argument skip is their number.
func (l load) sql(engine, text string, skip int) string {
	series := fmt.Sprintf("generate_series(%d, %d) as series(i)", skip, skip+l.n-1)
	request := fmt.Sprintf("'\\x%x'::bytea", sampleRequest)
	if engine == sqlite {
		series = fmt.Sprintf("(with recursive s(i) as (select %d union all select i + 1 from s where i < %d) select i from s) as series", skip, skip+l.n-1)
		request = fmt.Sprintf("x'%x'", sampleRequest)
	}
	moment := fmt.Sprintf("%d + i * %d", l.due, l.every)
	if l.scatter > 0 {
		// Multiples of a prime number visit the range in an irregular order.
		moment = fmt.Sprintf("%d + (cast(i as bigint) * 1234567891) %% %d", l.due, l.scatter)
	}
	intent, at, done, left := "0", "0", "null", "0"
	if l.left {
		intent, at, done, left = "-1", "due", "due", "1"
	}
	var steps []string
	for i := range l.steps {
		steps = append(steps, fmt.Sprintf(`{"step":%d,"content":{"text":"%s"}}`, i, strings.ReplaceAll(sampleText, "'", "''")))
	}
	return strings.NewReplacer(
		"$series", series, "$request", request, "$moment", moment, "$content", "["+strings.Join(steps, ",")+"]",
		"$first", fmt.Sprint(l.first), "$steps", fmt.Sprint(l.steps), "$due", fmt.Sprint(l.due), "$clients", fmt.Sprint(customers),
		"$intent", intent, "$at", at, "$done", done, "$left", left,
	).Replace(text)
}
