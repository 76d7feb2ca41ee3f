package fleet

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
)

// SessionColumns lists the columns of a session s. [SessionFields] scans them.
const SessionColumns = `s.id, s.client_id, s.name, s.type, s.way, s.sandbox, s.is_default, s.per_min, s.per_day, s.cold_per_min,
 s.cold_per_day, s.jitter, s.start_sequence, s.stop_sequence, s.created_at, s.owner, s.direct_send, s.marketing_path, s.creative`

// SessionFields returns the targets for scanning [SessionColumns].
func SessionFields(s *puntuale.Session) []any {
	return []any{&s.ID, &s.Client, &s.Name, &s.Type, &s.Way, engine.ScanBool(&s.Sandbox), engine.ScanBool(&s.Default), &s.Pace.PerMinute, &s.Pace.PerDay,
		&s.Pace.ColdPerMinute, &s.Pace.ColdPerDay, &s.Pace.Jitter, &s.Start, &s.Stop,
		engine.ScanTime(&s.Created), &s.Owner, engine.ScanBool(&s.Ways.DirectSend), engine.ScanBool(&s.Ways.Marketing), engine.ScanBool(&s.Ways.Creative)}
}

// linkedColumns also lists the columns of a session's link. API answers show the link, and nodes need it for their
// sessions. A start does not need it.
const linkedColumns = SessionColumns + `, s.link, s.link_at, s.number, s.link_detail, s.code, s.code_until,
 s.link_condition, s.limited_until, s.page_until`

// ShownColumns lists the columns for an API answer. If the owner's lease has ended, the owner is shown as 0, because
// perhaps no node is running.
var ShownColumns = strings.Replace(linkedColumns, "s.owner",
	"case when exists (select 1 from node n where n.id = s.owner and n.lease_until > $clock) then s.owner else 0 end", 1)

// LinkedFields returns the targets for scanning [ShownColumns].
func LinkedFields(s *puntuale.Session) []any {
	return append(SessionFields(s), &s.Link.State, engine.ScanTime(&s.Link.Since), &s.Link.Number, engine.ScanReason(&s.Link.Detail), engine.ScanBytes(&s.Link.Code), engine.ScanTime(&s.Link.Until),
		&s.Link.Condition, engine.ScanTime(&s.Link.Limited), engine.ScanTime(&s.Link.PageUntil))
}

const faultSessionDefaultExists puntuale.ReasonCode = "session.default_exists"

// InsertSession writes a new session and returns its id. Codes: conflict (the client already has a default session).
func InsertSession(ctx context.Context, a engine.Querier, client puntuale.ClientID, s puntuale.Session) (puntuale.SessionID, error) {
	id, err := engine.NextNumber(ctx, a, "session")
	if err != nil {
		return 0, err
	}
	_, err = a.Exec(ctx, `insert into session (client_id, id, name, type, sandbox, is_default, start_sequence,
 stop_sequence, created_at, per_min, per_day, cold_per_min, cold_per_day, jitter, way,
 direct_send, marketing_path, creative)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		client, id, s.Name, s.Type, engine.Bit(s.Sandbox), engine.Bit(s.Default), s.Start, s.Stop, engine.Micros(s.Created),
		s.Pace.PerMinute, s.Pace.PerDay, s.Pace.ColdPerMinute, s.Pace.ColdPerDay, s.Pace.Jitter, string(s.Way),
		engine.Bit(s.Ways.DirectSend), engine.Bit(s.Ways.Marketing), engine.Bit(s.Ways.Creative))
	if err != nil {
		if engine.Repeated(err) {
			return 0, puntuale.Conflict(faultSessionDefaultExists)
		}
		return 0, fmt.Errorf("insert a session: %w", err)
	}
	return puntuale.SessionID(id), nil
}

// SessionColumn returns the ids of sessions as a column.
func SessionColumn(sessions []puntuale.SessionID) engine.Columns {
	return engine.Columns{engine.Column(sessions, func(id *puntuale.SessionID) int64 { return int64(*id) })}
}
