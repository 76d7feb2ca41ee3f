package queue

import (
	"context"
	"fmt"

	"puntuale/internal/store/engine"
)

// renewals lists the statements of [RenewNumbers]. Ids of prekeys have 24 bits, so the last statement adds no id above
// 16777215.
var renewals = []string{
	`delete from whatsmeow_sessions`,
	`delete from whatsmeow_sender_keys`,
	`update whatsmeow_pre_keys set uploaded = true where uploaded = false`,
	`insert into whatsmeow_pre_keys (jid, key_id, key, uploaded) select p.jid, p.key_id + 10000, p.key, true from whatsmeow_pre_keys p
 where p.key_id = (select max(q.key_id) from whatsmeow_pre_keys q where q.jid = p.jid) and p.key_id < 16777215 - 10000`,
}

// RenewNumbers changes the restored keys of linked numbers. After that they are safe to use, although the network has
// seen newer keys than those in the backup.
func RenewNumbers(ctx context.Context, a engine.Querier) error {
	for _, text := range renewals {
		if _, err := a.Exec(ctx, text); err != nil {
			return fmt.Errorf("renew the keys of linked numbers: %w", err)
		}
	}
	return nil
}
