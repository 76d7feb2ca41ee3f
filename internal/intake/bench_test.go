package intake_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/intake"
	"puntuale/internal/store/storetest"
)

// BenchmarkReplies stores replies from 32 goroutines at the same time, one reply in each call. Half of the people got a
// message before. The benchmark also reports the processor time of this process for each reply.
func BenchmarkReplies(b *testing.B) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			w := storetest.NewWorld(b, driver(b))
			c := w.Client(puntuale.AccountFull)
			if _, err := c.UpdateSettings(b.Context(), puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
				b.Fatal(err)
			}
			in := intake.New(intake.Config{Store: w.Store, Clock: w.DB.Clock, MessageMark: messageMark, Logger: slog.New(slog.DiscardHandler)})
			for i := range 500 {
				c.MustStart(fmt.Sprintf("+39333%07d", 2*i), storetest.Begin.Add(time.Hour), 2)
			}
			var next atomic.Int64
			begun := used()
			b.SetParallelism(16)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := next.Add(1)
					reported := puntuale.InboundBatch{Messages: []puntuale.InboundMessage{{
						Client: c.ID, Session: c.Session, Phone: fmt.Sprintf("+39333%07d", i%1000), At: storetest.Begin, ID: fmt.Sprint("m", i),
						Kind: puntuale.ReplyText, Text: "Grazie, a domani!",
					}}}
					if err := in.Take(context.Background(), c.Session, reported); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64((used()-begun).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// used returns the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
