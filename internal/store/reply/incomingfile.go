package reply

import (
	"context"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/file"
	"puntuale/internal/store/outbox"
)

// tell notes which files of replies are to be kept, and that the replies came.
func (b *inboundBatch) tell(ctx context.Context, rows []*inbound) error {
	now := b.tasks[0].Body.(*inboundCall).now
	if err := b.noteFiles(ctx, rows, engine.Micros(now)); err != nil {
		return err
	}
	var facts []outbox.Fact
	for _, x := range rows {
		if !x.Own {
			facts = append(facts, outbox.Fact{Client: x.Client, Type: puntuale.EventReplyReceived, Subject: x.id})
		}
	}
	return outbox.Emit(ctx, b.a, now, facts)
}

// noteFiles notes which files are to be kept, if the clients' settings say so. Files of own messages are the clients' already.
func (b *inboundBatch) noteFiles(ctx context.Context, rows []*inbound, now int64) error {
	files := slices.DeleteFunc(slices.Clone(rows), func(x *inbound) bool { return x.media == "" || x.Own || !b.set[x.Client].KeepMedia })
	if len(files) == 0 {
		return nil
	}
	return file.NoteIncoming(ctx, b.a, engine.Columns{
		engine.Column(files, func(x **inbound) int64 { return int64((*x).Client) }),
		engine.Column(files, func(x **inbound) int64 { return (*x).id }),
		engine.Column(files, func(**inbound) int64 { return now }),
	})
}
