package outbox

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// AnswersAbout finds the deliveries of events about subjects.
const AnswersAbout = `
select d.webhook_id, d.at, d.client_id, d.seq from $u(c bigint, s bigint)
cross join outbox_event e cross join client k cross join webhook w cross join delivery d
where e.client_id = u.c and e.subject = u.s and k.id = u.c
 and w.partner_id = k.partner_id and w.client_id in (0, k.id)
 and d.webhook_id = w.id and d.at = e.at and d.client_id = e.client_id and d.seq = e.seq
order by d.webhook_id, d.at, d.client_id, d.seq for update of d`

// ForgetAnswers removes what receivers answered to events about messages, replies or entries of a client, since an answer may repeat what it
// was told. The caller's transaction, or one before it, removed the texts themselves. Locks: the deliveries, also those without an answer:
// the transaction that keeps an answer locks its delivery first, and then looks whether the subject was forgotten.
func ForgetAnswers(ctx context.Context, a engine.Querier, client puntuale.ClientID, subjects []int64) error {
	if len(subjects) == 0 {
		return nil
	}
	type key struct{ webhook, at, client, seq int64 }
	clients := make([]int64, len(subjects))
	for i := range clients {
		clients[i] = int64(client)
	}
	all, err := engine.QueryAll(ctx, a, AnswersAbout, []any{engine.Columns{clients, subjects}}, func(r engine.Row, k *key) error {
		return r.Scan(&k.webhook, &k.at, &k.client, &k.seq)
	})
	if err != nil {
		return fmt.Errorf("look for answers of receivers: %w", err)
	}
	if len(all) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update delivery set answer = '' from $u(w bigint, t bigint, c bigint, s bigint)
 where delivery.webhook_id = u.w and delivery.at = u.t and delivery.client_id = u.c and delivery.seq = u.s and delivery.answer <> ''`, engine.Columns{
		engine.Column(all, func(k *key) int64 { return k.webhook }),
		engine.Column(all, func(k *key) int64 { return k.at }),
		engine.Column(all, func(k *key) int64 { return k.client }),
		engine.Column(all, func(k *key) int64 { return k.seq }),
	}); err != nil {
		return fmt.Errorf("forget answers of receivers: %w", err)
	}
	return nil
}
