package store_test

import (
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestBacklogWithoutPaused: what a paused campaign holds back is not late.
func TestBacklogWithoutPaused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		campaign, _ := c.MustCampaign(1)
		ids := c.MustStart(someone, storetest.Begin, 2)
		w.Exec("update session set sandbox = 1, link = 0 where id = $1", c.Session)
		w.Exec("update message set campaign_id = $1, priority = 1 where id = $2", campaign, ids[0])
		for state, want := range map[int]int64{3: 2, 4: 1, 5: 1, 6: 1, 7: 2} {
			w.Exec("update campaign set state = $1 where id = $2", state, campaign)
			ready, waiting, err := w.Store.Backlog(t.Context(), storetest.Begin.Add(time.Hour))
			if err != nil || ready.Messages != want || waiting.Messages != 0 {
				t.Errorf("state %d: %d ready, %d waiting, %v; want %d ready", state, ready.Messages, waiting.Messages, err, want)
			}
		}
	})
}

// TestTemplateCategoryRaisesRevision: plans in memory depend on the categories of Meta's templates.
func TestTemplateCategoryRaisesRevision(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		w.Exec("insert into official (client_id, session_id, number, account) values ($1, $2, '101', '55')", c.ID, c.Session)
		revision := func() int64 { return w.Int("select revision from client where id = $1", c.ID) }
		at := storetest.Begin
		for i, step := range []struct {
			event  puntuale.TemplateEvent
			raises bool
		}{
			{puntuale.TemplateEvent{Status: "APPROVED", Category: "UTILITY"}, true},
			{puntuale.TemplateEvent{Quality: "GREEN"}, false},
			{puntuale.TemplateEvent{Category: "MARKETING"}, true},
			{puntuale.TemplateEvent{Category: "MARKETING"}, false},
		} {
			at = at.Add(time.Second)
			before := revision()
			e := step.event
			e.Client, e.Account, e.Name, e.Language, e.At = c.ID, "55", "promemoria", "it", at
			if err := w.Store.TellNetworkTemplate(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if raised := revision() > before; raised != step.raises {
				t.Errorf("event %d raises the revision: %v", i, raised)
			}
		}
	})
}
