package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// TestPostgresWithoutRoom makes PostgreSQL report that the disk is full. The store must refuse each call that needs
// more disk space, and its error must not say that the result is in doubt. Calls that need no more disk space must
// still work.
func TestPostgresWithoutRoom(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	ctx := context.Background()
	c.MustStart("+393331234567", storetest.Begin, 1)
	w.Exec("create sequence tries")
	w.Exec(`create function no_room() returns trigger language plpgsql as $$ begin
 perform nextval('tries');
 raise exception 'could not extend file: No space left on device' using errcode = '53100';
end $$`)
	w.Exec("create trigger no_room before insert on message for each statement execute function no_room()")
	const starts = 20
	answers := make(chan error, starts)
	for n := range starts {
		go func() {
			_, err := c.Start(ctx, c.Run(fmt.Sprintf("+3933312340%02d", n), storetest.Begin, 1))
			answers <- err
		}()
	}
	for range starts {
		err := <-answers
		if puntuale.CodeOf(err) != puntuale.CodeStoreFull || strings.Contains(err.Error(), "store.in_doubt") {
			t.Errorf("a start: %v", err)
		}
	}
	if _, err := c.Stop(ctx, c.Sequence, []string{"+393331234567"}, "", storetest.Day, storetest.Begin); err != nil {
		t.Errorf("a stop: %v", err)
	}
	if n := w.Int("select last_value from tries"); n > starts {
		t.Errorf("%d starts were tried %d times", starts, n)
	}
	w.Exec("drop trigger no_room on message")
	c.MustStart("+393331234567", storetest.Begin, 1)
	if n := w.Int("select count(*) from run"); n != 2 {
		t.Errorf("%d runs", n)
	}
}

// TestCommitUnsure checks which errors of COMMIT prove a rollback. These are errors that PostgreSQL itself sent, if it
// did not end the connection and did not report that the result is unknown.
func TestCommitUnsure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		unsure bool
	}{
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "53100"}, false},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "40P01"}, false},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "40003"}, true},
		{&pgconn.PgError{SeverityUnlocalized: "PANIC", Code: "58030"}, true},
		{&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "25P04"}, true},
		{io.ErrUnexpectedEOF, true},
		{errors.New("unexpected message type"), true},
		{context.DeadlineExceeded, true},
	} {
		if got := store.Unsure(fmt.Errorf("commit: %w", c.err)); got != c.unsure {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}
