package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
)

const deviceColumns = `d.id, d.client_id, d.session_id, d.name, d.dedupes, d.assisted, d.linked_at, d.seen_at,
 case when d.push is null then 0 else 1 end`

func deviceFields(d *puntuale.Device) []any {
	return []any{&d.ID, &d.Client, &d.Session, &d.Name, engine.ScanBool(&d.Dedupes), engine.ScanBool(&d.Assisted), engine.ScanTime(&d.Linked), engine.ScanTime(&d.Seen), engine.ScanBool(&d.Pushed)}
}

// OfferDevice stores a new code that links a device to the session, and deletes the earlier code. The argument mark
// is the keyed hash of the code. Codes: not_found, conflict (the session has [puntuale.MaxDevices] devices).
func (t tenant) OfferDevice(ctx context.Context, session puntuale.SessionID, sealed []byte, mark string, expiresAt time.Time) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		s, err := t.lockedSession(ctx, a, session)
		if err == nil && !s.ByDevice() {
			err = puntuale.NotFound(puntuale.NoSession)
		}
		if err == nil {
			err = t.checkDeviceQuota(ctx, a, session)
		}
		if err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update session set code = $3, code_mark = $4, code_until = $5 where client_id = $1 and id = $2`,
			t.id, session, sealed, mark, engine.Micros(expiresAt)); err != nil {
			return fmt.Errorf("store a device's code: %w", err)
		}
		return nil
	})
}

// Codes of the faults that functions in this file return.
const (
	faultDeviceMessagesHeld puntuale.ReasonCode = "device.messages_held"
	faultDeviceNotLinked    puntuale.ReasonCode = "device.not_linked"
	faultDeviceTooMany      puntuale.ReasonCode = "device.too_many"
	faultSessionPageStarts  puntuale.ReasonCode = "session.page_starts"
)

// checkDeviceQuota returns an error if the session already has the largest allowed number of devices. The caller has
// locked the session.
func (t tenant) checkDeviceQuota(ctx context.Context, a engine.Querier, session puntuale.SessionID) error {
	var n int
	if _, err := engine.QueryOne(ctx, a, `select count(*) from device where client_id = $1 and session_id = $2`, []any{t.id, session}, &n); err != nil {
		return fmt.Errorf("count devices: %w", err)
	}
	if n >= puntuale.MaxDevices {
		return puntuale.Conflict(faultDeviceTooMany, strconv.Itoa(n))
	}
	return nil
}

// Devices lists the session's devices, sorted by id.
func (t tenant) Devices(ctx context.Context, session puntuale.SessionID) ([]puntuale.Device, error) {
	all, err := engine.QueryAll(ctx, t.s.CallReads, `select `+deviceColumns+`,
 (select count(*) from device_hold h join message m on m.client_id = h.client_id and m.id = h.message_id
   where h.client_id = d.client_id and h.session_id = d.session_id and h.device_id = d.id and h.done = 0 and m.intent = h.token)
 from device d where d.client_id = $1 and d.session_id = $2 order by d.id`, []any{t.id, session}, func(rows engine.Row, d *puntuale.Device) error {
		return rows.Scan(append(deviceFields(d), &d.Held)...)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list devices: %w", err))
	}
	return all, nil
}

// LinkDevice finds the client by the linking code. It checks the code again after it has locked the session.
func (s *Store) LinkDevice(ctx context.Context, mark string, d puntuale.Device, token puntuale.KeyHash, now time.Time) (puntuale.Device, error) {
	const offered = `select s.client_id, s.id from session s join client c on c.id = s.client_id and c.deleted_at = 0
 where s.code_mark = $1 and s.code_until > $2 and s.deleted_at = 0`
	found, err := false, error(nil)
	if mark != "" {
		found, err = engine.QueryOne(ctx, s.CallReads, offered, []any{mark, engine.Micros(now)}, &d.Client, &d.Session)
	}
	if err := engine.FoundOr(found, err, puntuale.NoCode); err != nil {
		return d, err
	}
	t := tenant{s: s, id: d.Client}
	d.Linked, d.Seen = now, now
	err = t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := t.lockSessions(ctx, a, d.Session); err != nil {
			return err
		}
		found, err := engine.QueryOne(ctx, a, offered, []any{mark, engine.Micros(now)}, &d.Client, &d.Session)
		if err := engine.ThereOr(found, err, puntuale.NoCode); err != nil {
			return err
		}
		if err := t.checkDeviceQuota(ctx, a, d.Session); err != nil {
			return err
		}
		id, err := engine.NextNumber(ctx, a, "device")
		if err != nil {
			return err
		}
		d.ID = puntuale.DeviceID(id)
		if _, err := a.Exec(ctx, `insert into device (client_id, id, session_id, name, token, dedupes, assisted, linked_at, seen_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $8)`, d.Client, d.ID, d.Session, d.Name, token[:], engine.Bit(d.Dedupes), engine.Bit(d.Assisted), engine.Micros(now)); err != nil {
			return fmt.Errorf("insert a device: %w", err)
		}
		return t.setDeviceLink(ctx, a, d.Session, now)
	})
	return d, err
}

// OfferLinkingPage stores a new linking page of a session whose number is not linked. It ends the earlier page. mark ""
// only ends the earlier page. begun reports whether somebody began to link with the earlier page, also if it ended before;
// while a pairing runs, only a new page forgets it.
// Codes: not_found, conflict (the number is linked; the session has devices).
func (t tenant) OfferLinkingPage(ctx context.Context, session puntuale.SessionID, mark string, until time.Time) (begun bool, err error) {
	err = t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		s, err := t.lockedSession(ctx, a, session)
		if err != nil {
			return err
		}
		starts := 0
		if _, err := engine.QueryOne(ctx, a, `select s.link, s.page_starts
 from session s where s.client_id = $1 and s.id = $2`, []any{t.id, session}, &s.Link.State, &starts); err != nil {
			return fmt.Errorf("read a session's link: %w", err)
		}
		begun = starts > 0
		switch state := s.LinkOf(); {
		case s.ByDevice():
			return puntuale.NoLinker() // its code links a device
		case mark != "" && (state == puntuale.LinkLinked || state == puntuale.LinkOnline):
			return puntuale.AlreadyLinked()
		}
		if mark != "" || s.LinkOf() != puntuale.LinkPairing {
			starts = 0
		}
		if _, err := a.Exec(ctx, `update session set code_mark = $3, page_until = $4, page_starts = $5 where client_id = $1 and id = $2`,
			t.id, session, mark, engine.Micros(until), starts); err != nil {
			return fmt.Errorf("store a linking page: %w", err)
		}
		return nil
	})
	return begun, err
}

// LinkingPage finds the session by the page's mark. The code of a device has a mark of another kind.
func (s *Store) LinkingPage(ctx context.Context, mark string) (puntuale.LinkingPage, error) {
	p, found, err := puntuale.LinkingPage{Mark: mark}, false, error(nil)
	if mark != "" {
		found, err = engine.QueryOne(ctx, s.CallReads, `select s.client_id, s.id, s.page_until, s.page_starts
 from session s join client c on c.id = s.client_id and c.deleted_at = 0
 where s.code_mark = $1 and s.way <> $2 and s.deleted_at = 0`, []any{mark, string(puntuale.WayDevice)}, &p.Client, &p.Session, engine.ScanTime(&p.Until), &p.Starts)
	}
	return p, engine.FoundOr(found, err, puntuale.NoPage)
}

func (s *Store) StartLinkingPage(ctx context.Context, p puntuale.LinkingPage, now time.Time) error {
	t := tenant{s: s, id: p.Client}
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var starts int
		found, err := engine.QueryOne(ctx, a, `update session set page_starts = page_starts + 1
 where client_id = $1 and id = $2 and code_mark = $3 and page_until > $4 and deleted_at = 0 returning page_starts`,
			[]any{p.Client, p.Session, p.Mark, engine.Micros(now)}, &starts)
		if err := engine.ThereOr(found && p.Mark != "", err, puntuale.NoPage); err != nil {
			return err
		}
		if starts > puntuale.MaxPageStarts { // the transaction is undone
			return puntuale.Conflict(faultSessionPageStarts, strconv.Itoa(puntuale.MaxPageStarts))
		}
		return nil
	})
}

// setDeviceLink deletes the session's linking code. It also makes the session online if the session has a device, and
// not linked otherwise.
func (t tenant) setDeviceLink(ctx context.Context, a engine.Querier, session puntuale.SessionID, now time.Time) error {
	var n int64
	count, err := engine.QueryOne(ctx, a, `select d.id from device d where d.client_id = $1 and d.session_id = $2 limit 1`, []any{t.id, session}, &n)
	if err != nil {
		return fmt.Errorf("look for a session's devices: %w", err)
	}
	link := puntuale.Link{State: puntuale.LinkUnlinked}
	if count {
		link.State = puntuale.LinkOnline
	}
	if err := fleet.TellLink(ctx, a, session, link, now); err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update session set code = $4, code_mark = '', code_until = 0, link = $5,
 link_at = $3::bigint where client_id = $1 and id = $2`, t.id, session, engine.Micros(now), []byte{}, link.State); err != nil {
		return fmt.Errorf("store a session's link: %w", err)
	}
	return nil
}

// UnlinkDevices unlinks one device, or with device 0 all devices of the session. It also deletes the session's
// linking code. Messages that these devices hold become uncertain. Codes: not_found (the session, or the device).
func (t tenant) UnlinkDevices(ctx context.Context, session puntuale.SessionID, device puntuale.DeviceID, now time.Time) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		locked, err := t.lockSessions(ctx, a, session)
		if err := engine.ThereOr(len(locked) > 0, err, puntuale.NoSession); err != nil {
			return err
		}
		unlinked, err := engine.QueryAll(ctx, a, `select id from device where client_id = $1 and session_id = $2 and (id = $3 or $3 = 0)`,
			[]any{t.id, session, device}, engine.ScanOne[puntuale.DeviceID])
		if err := engine.ThereOr(len(unlinked) > 0 || device == 0, err, puntuale.NoDevice); err != nil {
			return err
		}
		for _, id := range unlinked {
			if err := t.letGo(ctx, a, session, id, now); err != nil {
				return err
			}
			if _, err := a.Exec(ctx, `delete from device where client_id = $1 and id = $2`, t.id, id); err != nil {
				return fmt.Errorf("delete a device: %w", err)
			}
		}
		return t.setDeviceLink(ctx, a, session, now)
	})
}

// letGo ends the holds of a device. Nobody knows whether the device sent the messages that it holds. So the session's
// node makes these messages uncertain.
func (t tenant) letGo(ctx context.Context, a engine.Querier, session puntuale.SessionID, device puntuale.DeviceID, now time.Time) error {
	held, err := t.holds(ctx, a, ` and h.session_id = $2 and h.device_id = $3`, session, device)
	if err != nil {
		return err
	}
	if err := t.moveMessages(ctx, a, held, now); err != nil {
		return err
	}
	return t.moveHolds(ctx, a, held, now)
}

// SeenDevice stores that the device called at the time now.
//
// SeenDevice changes the row only if its seen_at is earlier than now.
func (t tenant) SeenDevice(ctx context.Context, device puntuale.DeviceID, now time.Time) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update device set seen_at = $3 where client_id = $1 and id = $2 and seen_at < $3`, t.id, device, engine.Micros(now))
		if err != nil {
			return fmt.Errorf("note a device: %w", err)
		}
		return nil
	})
}

// KeepPush stores the sealed address for pushes to the device. It replaces an earlier address. nil: the device
// wants no pushes. Codes: not_found.
func (t tenant) KeepPush(ctx context.Context, device puntuale.DeviceID, sealed []byte) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update device set push = $3, push_after = case when push_failures > 0 then 0 else push_after end, push_failures = 0
 where client_id = $1 and id = $2`, t.id, device, sealed)
		return engine.ThereOr(n > 0, err, puntuale.NoDevice)
	})
}

var errUnknownDevice = &puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Because(faultDeviceNotLinked)}

func (s *Store) DeviceOf(ctx context.Context, token puntuale.KeyHash) (puntuale.Client, puntuale.Device, error) {
	var c puntuale.Client
	var d puntuale.Device
	found, err := engine.QueryOne(ctx, s.CallReads, `select `+deviceColumns+`, `+account.ClientColumns+` from device d
 join session s on s.client_id = d.client_id and s.id = d.session_id and s.deleted_at = 0
 join client c on c.id = d.client_id and c.deleted_at = 0 where d.token = $1`, []any{token[:]}, append(deviceFields(&d), account.ClientFields(&c)...)...)
	switch {
	case err != nil:
		return c, d, engine.PublicError(fmt.Errorf("look for a device: %w", err))
	case !found:
		return c, d, errUnknownDevice
	}
	return c, d, nil
}

// keepHolds is how long the row of an ended hold is kept. A device may send its report that late.
const keepHolds = 30 * 24 * time.Hour

// purgeHolds deletes holds that ended longer ago than keepHolds.
func (s *Store) purgeHolds(ctx context.Context, now time.Time) error {
	return s.TenantWriters[0].Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from device_hold where until < $1`, engine.Micros(now.Add(-keepHolds))); err != nil {
			return fmt.Errorf("forget holds: %w", err)
		}
		return nil
	}), false)
}

// noHold returns an error while a device holds a message of the session, because the device may be sending the message
// now.
func (t tenant) noHold(ctx context.Context, a engine.Querier, session puntuale.SessionID, now time.Time) error {
	var n int
	if _, err := engine.QueryOne(ctx, a, `select count(*) from device_hold h join message m on m.client_id = h.client_id and m.id = h.message_id
 where h.client_id = $1 and h.session_id = $2 and h.done = 0 and h.until > $3 and m.intent = h.token`, []any{t.id, session, engine.Micros(now)}, &n); err != nil {
		return fmt.Errorf("look for holds: %w", err)
	}
	if n > 0 {
		return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultDeviceMessagesHeld, strconv.Itoa(n))}
	}
	return nil
}
