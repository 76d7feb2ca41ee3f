package retention

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// reasons removes the person's names from the reasons of messages. A reason is usually a fixed text. The codes stay,
// because failures are counted by them.
func (x *erasedRuns) reasons(ctx context.Context, refs []puntuale.MessageRef) error {
	digits := engine.Column(x.names, func(name *string) string { return strings.TrimPrefix(*name, "+") })
	var changed []puntuale.MessageRef
	var reasons []string
	if err := x.a.Query(ctx, `select m.client_id, m.id, m.reason from $u(c bigint, i bigint) cross join message m where m.client_id = u.c and m.id = u.i and m.reason <> ''`,
		[]any{queue.RefColumns(refs)}, func(r engine.Row) error {
			var ref puntuale.MessageRef
			var before string
			if err := r.Scan(&ref.Client, &ref.ID, &before); err != nil {
				return err
			}
			if after := withoutNames(puntuale.ParseReason(before), digits).Stored(); containsAny(before, digits) {
				changed, reasons = append(changed, ref), append(reasons, after)
			}
			return nil
		}); err != nil {
		return fmt.Errorf("read reasons: %w", err)
	}
	if len(changed) == 0 {
		return nil
	}
	if _, err := x.a.Exec(ctx, `update message set reason = u.t from $u(c bigint, i bigint, t text) where message.client_id = u.c and message.id = u.i`,
		append(queue.RefColumns(changed), reasons)); err != nil {
		return fmt.Errorf("erase reasons: %w", err)
	}
	return nil
}

func containsAny(text string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) })
}

// withoutNames returns a reason without the texts that contain a name. A network's words become a code that says only
// that there were some.
func withoutNames(r puntuale.Reason, names []string) puntuale.Reason {
	if r.Code == "" {
		if containsAny(r.String(), names) {
			return puntuale.Because(puntuale.ReasonNetwork)
		}
		return r
	}
	r.Args = engine.Column(r.Args, func(arg *string) string {
		switch inner := puntuale.ParseReason(*arg); {
		case !containsAny(*arg, names):
			return *arg
		case inner.Code == "":
			return "…"
		default:
			return withoutNames(inner, names).Stored()
		}
	})
	return r
}
