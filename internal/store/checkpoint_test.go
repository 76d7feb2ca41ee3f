package store_test

import (
	"database/sql"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// logPages returns how many pages SQLite's log has, and how many of them are already copied into the database file.
func logPages(t *testing.T, db *sql.DB) (size, copied int) {
	t.Helper()
	var busy int
	if err := db.QueryRowContext(t.Context(), "pragma wal_checkpoint(noop)").Scan(&busy, &size, &copied); err != nil {
		t.Fatal(err)
	}
	return size, copied
}

// fillLog starts sequences until the log has at least the given number of pages.
func fillLog(t *testing.T, c *storetest.Client, db *sql.DB, pages int) {
	t.Helper()
	for size := 0; size < pages; {
		c.MustStart(someone, storetest.Begin, 100)
		size, _ = logPages(t, db)
	}
}

// TestLogIsCopiedBesideTheWriter checks that the log is copied into the file after the last commit. The next commit
// starts a new log, and has almost nothing left to copy.
func TestLogIsCopiedBesideTheWriter(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	c, db := w.Client(puntuale.AccountFull), w.DB.SQL
	fillLog(t, c, db, store.CheckpointEnd)
	storetest.Until(t, "the log is copied", func() bool {
		size, copied := logPages(t, db)
		return size-copied <= store.CheckpointLast
	})
	storetest.Until(t, "the log begins anew", func() bool {
		c.MustStart(someone, storetest.Begin, 1)
		size, _ := logPages(t, db)
		return size < store.CheckpointFrom
	})
}

// TestLogWaitsForReader keeps a reader in the middle of a list, so the log cannot be copied. Commits must still work,
// and no commit may try to copy the log.
func TestLogWaitsForReader(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	c, db := w.Client(puntuale.AccountFull), w.DB.SQL
	c.MustStart(someone, storetest.Begin, 1)
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRowContext(t.Context(), "select count(*) from message").Scan(&n); err != nil {
		t.Fatal(err)
	}
	other := w.DB.SQL
	snapshot, _ := logPages(t, other)
	fillLog(t, c, other, store.CheckpointEnd+500)
	if size, copied := logPages(t, other); copied > snapshot {
		t.Errorf("%d of %d pages were copied beside a reader", copied, size)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	storetest.Until(t, "the log begins anew", func() bool {
		c.MustStart(someone, storetest.Begin, 1)
		size, _ := logPages(t, other)
		return size < store.CheckpointFrom
	})
}

// TestDatesBound checks that rules plan fewer dates in one transaction while calls arrive, and rest after each
// transaction.
func TestDatesBound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		fake := clock.NewFake(time.Now())
		store.OnMachine(w.Store, fake)
		fake.Advance(time.Minute)
		limit, rest := w.DatesBound()
		if rest != 0 {
			t.Errorf("without calls the runner rests %d times as long as it works", rest)
		}
		w.Client(puntuale.AccountFull).MustStart(someone, storetest.Begin, 1)
		if dates, rest := w.DatesBound(); dates >= limit || rest != 2 {
			t.Errorf("beside a call there is room for %d dates of %d, and the rest is %d", dates, limit, rest)
		}
		fake.Advance(time.Minute)
		if dates, rest := w.DatesBound(); dates != limit || rest != 0 {
			t.Errorf("after the call there is room for %d dates of %d, and the rest is %d", dates, limit, rest)
		}
	})
}

// TestChunkBound checks that a chunk of a campaign is small while calls arrive, and large again afterwards.
func TestChunkBound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		fake := clock.NewFake(time.Now())
		store.OnMachine(w.Store, fake)
		c := w.Client(puntuale.AccountFull)
		fake.Advance(time.Minute)
		limit, calls := w.ChunkBound()
		if calls {
			t.Error("calls arrive, although none does")
		}
		c.MustStart(someone, storetest.Begin, 1)
		if rows, calls := w.ChunkBound(); !calls || rows >= limit {
			t.Errorf("beside a call there is room for %d rows of %d; calls arrive: %v", rows, limit, calls)
		}
		fake.Advance(time.Minute)
		if rows, calls := w.ChunkBound(); calls || rows != limit {
			t.Errorf("after the calls there is room for %d rows of %d; calls arrive: %v", rows, limit, calls)
		}
	})
}
