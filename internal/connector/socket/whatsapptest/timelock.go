//go:build !nosocket

package whatsapptest

import (
	"encoding/json"
	"strconv"
	"time"
)

// Timelock forbids an account to write to cold contacts. The server refuses a message with error 463 if the recipient
// never wrote to the account and never got a message from it.
type Timelock struct {
	Until time.Time // when the time-lock ends; a past time ends it immediately
	Quiet bool      // the account gets no report of the time-lock
}

// Timelock starts or ends a time-lock of the account. It reports this to the account's devices, unless lock is quiet.
func (a *Account) Timelock(lock Timelock) {
	a.n.mu.Lock()
	defer a.n.mu.Unlock()
	a.timelock = lock
	if lock.Quiet {
		return
	}
	active := time.Until(lock.Until) > 0
	about := map[string]any{"is_active": active}
	if active {
		about["enforcement_type"] = "BIZ_QUALITY"
		about["time_enforcement_ends"] = strconv.FormatInt(lock.Until.Unix(), 10)
	}
	update, err := json.Marshal(map[string]any{"data": map[string]any{"xwa2_notify_account_reachout_timelock": about}})
	if err != nil {
		a.n.misunderstood("encode a time-lock: %v", err)
		return
	}
	for _, d := range a.devices {
		d.keep(element("notification", attrs{"from": server, "id": a.n.id(), "type": "mex", "t": seconds(time.Now())},
			data("update", attrs{"op_name": "NotificationUserReachoutTimelockUpdate"}, update)))
	}
}

// cold reports whether a time-lock forbids the account to write to another account. The caller holds n.mu.
func (a *Account) cold(to *Account) bool {
	return time.Until(a.timelock.Until) > 0 && !a.met[to] && a != to
}
