package store_test

import (
	"context"
	"fmt"
	"testing"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestSQLiteFull limits the file's size, as if the disk were full. Then calls must be refused, and no call that was
// answered may be lost. When there is room again, calls must work again.
func TestSQLiteFull(t *testing.T) {
	t.Parallel()
	d := storetest.SQLite(t)
	roomy := d.Config
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	pages := w.Int("pragma page_count")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d.Config.Database = fmt.Sprintf("sqlite:%s/puntuale.db?_pragma=max_page_count(%d)", d.Config.Data, pages+20)
	full := d.Open(t)
	ctx := context.Background()
	answered := int64(0)
	for range 200 {
		_, err := full.Tenant(c.ID).Start(ctx, c.Run("+393331234567", storetest.Begin, 20))
		if err == nil {
			answered++
			continue
		}
		if puntuale.CodeOf(err) != puntuale.CodeStoreFull {
			t.Fatalf("full: %v", err)
		}
	}
	if answered == 0 || answered == 200 {
		t.Fatalf("%d of 200 answered", answered)
	}
	if _, err := full.Tenant(c.ID).Sequence(ctx, c.Sequence); err != nil {
		t.Fatalf("reading from a full disk: %v", err)
	}
	if runs, used := w.Int("select count(*) from run"), w.Int("select used from api_usage"); runs != answered || used != answered {
		t.Fatalf("%d runs, %d calls counted, %d answered", runs, used, answered)
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	d.Config = roomy
	if _, err := d.Open(t).Tenant(c.ID).Start(ctx, c.Run("+393331234567", storetest.Begin, 20)); err != nil {
		t.Fatal(err)
	}
}

// TestSQLiteBusy lets another process write to the file for a while. If that process does not stop, the store must be
// unavailable, but no data may be wrong.
func TestSQLiteBusy(t *testing.T) {
	t.Parallel()
	d := storetest.SQLite(t)
	d.Config.Database = "sqlite:" + d.Config.Data + "/puntuale.db?_pragma=busy_timeout(20)"
	w := storetest.NewWorld(t, d)
	c := w.Client(puntuale.AccountFull)
	ctx := context.Background()
	other, err := d.SQL.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(ctx, "begin immediate"); err != nil {
		t.Fatal(err)
	}
	_, err = c.Start(ctx, c.Run("+393331234567", storetest.Begin, 1))
	if puntuale.CodeOf(err) != puntuale.CodeUnavailable {
		t.Fatalf("busy: %v", err)
	}
	if _, err := other.ExecContext(ctx, "rollback"); err != nil {
		t.Fatal(err)
	}
	c.MustStart("+393331234567", storetest.Begin, 1)
	if runs, used := w.Int("select count(*) from run"), w.Int("select used from api_usage"); runs != 1 || used != 1 {
		t.Fatalf("%d runs, %d calls counted", runs, used)
	}
}
