package outbox

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// AnswersAbout finds the deliveries of events about the given subjects.
const AnswersAbout = `
select d.webhook_id, d.at, d.client_id, d.seq from $u(c bigint, s bigint)
cross join outbox_event e cross join client k cross join webhook w cross join delivery d
where e.client_id = u.c and e.subject = u.s and k.id = u.c
 and w.partner_id = k.partner_id and w.client_id in (0, k.id)
 and d.webhook_id = w.id and d.at = e.at and d.client_id = e.client_id and d.seq = e.seq
order by d.webhook_id, d.at, d.client_id, d.seq for update of d`

// Subject is the subject of an event: a message, a reply or an entry of the ledger of consent.
type Subject struct {
	Client puntuale.ClientID
	ID     int64
}

// Subjects returns the given ids of one client as subjects.
func Subjects[ID ~int64](client puntuale.ClientID, ids []ID) []Subject {
	return engine.Column(ids, func(id *ID) Subject { return Subject{client, int64(*id)} })
}

// MessageSubjects returns the messages as subjects.
func MessageSubjects(refs []puntuale.MessageRef) []Subject {
	return engine.Column(refs, func(r *puntuale.MessageRef) Subject { return Subject{r.Client, int64(r.ID)} })
}

// ForgetAnswers removes receivers' answers to events about the subjects, because an answer may repeat the event. The
// same transaction, or an earlier one, removes the texts of the subjects themselves.
//
// Locks: the deliveries, including those without an answer. A transaction that stores an answer first locks the
// delivery, and then checks whether the subject was erased.
func ForgetAnswers(ctx context.Context, a engine.Querier, subjects []Subject) error {
	if len(subjects) == 0 {
		return nil
	}
	type key struct{ webhook, at, client, seq int64 }
	all, err := engine.QueryAll(ctx, a, AnswersAbout, []any{engine.Columns{
		engine.Column(subjects, func(s *Subject) int64 { return int64(s.Client) }),
		engine.Column(subjects, func(s *Subject) int64 { return s.ID }),
	}}, func(r engine.Row, k *key) error {
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
