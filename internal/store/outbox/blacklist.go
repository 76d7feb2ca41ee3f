package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// BlacklistChanged returns the fact that an entry was added to the blacklist or removed from it. An entry that was
// removed has no row, so the detail contains the person. Then an erasure finds the event by its subject, which is a hash
// of the phone, and empties both.
func BlacklistChanged(client puntuale.ClientID, t puntuale.EventType, e puntuale.BlacklistEntry) (Fact, error) {
	origin := "client"
	if e.OptOut {
		origin = "person"
	}
	f := Fact{Client: client, Type: t}
	if strings.HasPrefix(e.Phone, puntuale.MarkPrefix) { // of an erased person, only that an entry was removed is told
		return f, nil
	}
	detail, err := Detail(struct {
		Phone  string `json:"phone"`
		Reason string `json:"reason"`
		Origin string `json:"origin"`
	}{e.Phone, puntuale.Quoted(e.Reason).Stored(), origin})
	f.Subject, f.Detail = phoneSubject(e.Phone), detail
	return f, err
}

// phoneSubject returns a number from 1 that stands for a phone. Two phones have the same number only by an accident that
// never happens.
func phoneSubject(phone string) int64 {
	sum := sha256.Sum256([]byte(phone))
	return int64(binary.BigEndian.Uint64(sum[:8])>>1) | 1
}

// TellBlacklist writes what changed in the blacklist.
func TellBlacklist(ctx context.Context, a engine.Querier, client puntuale.ClientID, t puntuale.EventType, at time.Time, all []puntuale.BlacklistEntry) error {
	facts := make([]Fact, len(all))
	for i, e := range all {
		var err error
		if facts[i], err = BlacklistChanged(client, t, e); err != nil {
			return err
		}
	}
	return Emit(ctx, a, at, facts)
}

// NumberChanged returns the fact that a person has another number. Like a fact about the blacklist, it contains the
// person.
func NumberChanged(client puntuale.ClientID, phone, old string, names []string) (Fact, error) {
	detail, err := Detail(struct {
		Phone string   `json:"phone"`
		Old   string   `json:"old_phone"`
		Names []string `json:"names"`
	}{phone, old, names})
	return Fact{Client: client, Type: puntuale.EventNumberChanged, Subject: phoneSubject(phone), Detail: detail}, err
}

// blacklistEvents contains the types whose detail names a person.
var blacklistEvents = fmt.Sprintf("(%d, %d, %d)", puntuale.EventBlacklistAdded, puntuale.EventBlacklistRemoved, puntuale.EventNumberChanged)

// ForgetBlacklist removes a person from events about the blacklist, and what receivers answered to these events. Facts
// come before events, because a numberer turns facts into events.
func ForgetBlacklist(ctx context.Context, a engine.Querier, client puntuale.ClientID, names []string) error {
	subjects := engine.Column(names, func(name *string) int64 { return phoneSubject(*name) })
	if err := ForgetAnswers(ctx, a, Subjects(client, subjects)); err != nil {
		return err
	}
	for _, table := range []string{"outbox_fact", "outbox_event"} {
		if _, err := a.Exec(ctx, `update `+table+` set subject = 0, detail = '' where client_id = $1 and type in `+blacklistEvents+`
 and subject in (select u.s from $u(s bigint))`, client, engine.Columns{subjects}); err != nil {
			return fmt.Errorf("forget whom events about the blacklist name: %w", err)
		}
	}
	return nil
}
