package queue

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// FormerMessages finds messages to numbers that people left (package person), and the phones of their runs. It runs only
// for messages to people with other names.
const FormerMessages = `
select u.c, u.i, r.phone, case when exists (select 1 from former_name o where o.client_id = r.client_id and o.name = r.phone) then 1 else 0 end
from $u(c bigint, i bigint) cross join message m cross join former_name f cross join run r
where m.client_id = u.c and m.id = u.i and f.client_id = m.client_id and f.name = m.phone and r.client_id = m.client_id and r.id = m.run_id`

// readdressed finds messages whose phone is not the one that the dispatcher read.
const readdressed = `
select u.c, u.i, m.phone, 0 from $u(c bigint, i bigint, p text) cross join message m where m.client_id = u.c and m.id = u.i and m.phone <> u.p`

// findFormer finds the messages to numbers that people left. A message that was accepted before the change, and was in
// flight when the number changed, gets the person's new number now, and the dispatcher reads it again. A message that was
// accepted later was meant for the old number. It fails, and is never redirected.
func (b *ClaimBatch) findFormer(ctx context.Context) error {
	var refs, read []puntuale.MessageRef
	var phones []string // that the dispatcher read
	places := map[puntuale.MessageRef]int{}
	for i, g := range b.granted {
		if g.named && (b.Messages[g.index].Intent == 0 || g.attempt == 1) { // a repeat of a known attempt goes where that attempt went
			refs, places[g.MessageRef] = append(refs, g.MessageRef), i
			if phone := b.Messages[g.index].Phone; phone != "" {
				read, phones = append(read, g.MessageRef), append(phones, phone)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	var moved []puntuale.MessageRef
	var to []string
	take := func(rows engine.Row) error {
		var ref puntuale.MessageRef
		var phone string
		var former bool
		if err := rows.Scan(&ref.Client, &ref.ID, &phone, engine.ScanBool(&former)); err != nil {
			return err
		}
		if former {
			b.granted[places[ref]].former = true
		} else {
			moved, to = append(moved, ref), append(to, phone)
		}
		return nil
	}
	if err := b.A.Query(ctx, FormerMessages, []any{RefColumns(refs)}, take); err != nil {
		return fmt.Errorf("look for numbers that people left: %w", err)
	}
	if len(read) > 0 {
		if err := b.A.Query(ctx, readdressed, []any{append(RefColumns(read), phones)}, take); err != nil {
			return fmt.Errorf("look for messages with another phone: %w", err)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	if _, err := b.A.Exec(ctx, `update message set phone = u.p from $u(c bigint, i bigint, p text) where message.client_id = u.c and message.id = u.i`, append(RefColumns(moved), to)); err != nil {
		return fmt.Errorf("give messages the new number: %w", err)
	}
	if err := b.release(ctx, moved); err != nil {
		return err
	}
	again := map[puntuale.MessageRef]bool{}
	for _, ref := range moved {
		again[ref] = true
	}
	kept := b.granted[:0]
	for _, g := range b.granted {
		if again[g.MessageRef] {
			b.Answers[g.index] = puntuale.ClaimStale
			continue
		}
		kept = append(kept, g)
	}
	b.granted = kept
	return nil
}
