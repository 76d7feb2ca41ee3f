package store

import (
	"context"
	"database/sql"
	"fmt"

	"puntuale"
)

const sessionColumns = `s.id, s.client_id, s.name, s.type, s.sandbox, s.is_default, s.per_min, s.start_sequence,
 s.stop_sequence, s.created_at, s.owner`

func sessionFields(s *puntuale.Session) []any {
	return []any{&s.ID, &s.Client, &s.Name, &s.Type, &s.Sandbox, &s.Default, &s.PerMin, &s.Start, &s.Stop,
		moment{&s.Created}, &s.Owner}
}

func scanSession(rows *sql.Rows, s *puntuale.Session) error { return rows.Scan(sessionFields(s)...) }

func (t tenant) CreateSession(ctx context.Context, s puntuale.Session) (puntuale.SessionID, error) {
	var id puntuale.SessionID
	err := t.write(ctx, func(ctx context.Context, a asker) error {
		var n int64
		found, err := one(ctx, a, `select id from client where id = $1 and deleted_at = 0`, []any{t.id}, &n)
		if err := foundOr(found, err, "client"); err != nil {
			return err
		}
		id, err = insertSession(ctx, a, t.id, s)
		return err
	})
	return id, err
}

func insertSession(ctx context.Context, a asker, client puntuale.ClientID, s puntuale.Session) (puntuale.SessionID, error) {
	id, err := number(ctx, a, "session")
	if err != nil {
		return 0, err
	}
	_, err = a.exec(ctx, `insert into session (client_id, id, name, type, sandbox, is_default, per_min, start_sequence,
 stop_sequence, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		client, id, s.Name, s.Type, bit(s.Sandbox), bit(s.Default), s.PerMin, s.Start, s.Stop, micros(s.Created))
	if err != nil {
		if repeated(err) {
			return 0, puntuale.Conflict("the client has a default session already")
		}
		return 0, fmt.Errorf("insert a session: %w", err)
	}
	return puntuale.SessionID(id), nil
}

func (t tenant) Session(ctx context.Context, id puntuale.SessionID) (puntuale.Session, error) {
	var s puntuale.Session
	found, err := one(ctx, t.s.read, `select `+sessionColumns+` from session s
 where s.client_id = $1 and s.id = $2 and s.deleted_at = 0`, []any{t.id, id}, sessionFields(&s)...)
	return s, foundOr(found, err, "session")
}

func (t tenant) Sessions(ctx context.Context, p puntuale.Page) ([]puntuale.Session, string, error) {
	last, limit, err := after(p, "session")
	if err != nil {
		return nil, "", err
	}
	all, err := list(ctx, t.s.read, `select `+sessionColumns+` from session s
 where s.client_id = $1 and s.id > $2 and s.deleted_at = 0 order by s.id limit $3`, []any{t.id, last, limit + 1}, scanSession)
	if err != nil {
		return nil, "", outward(fmt.Errorf("list sessions: %w", err))
	}
	all, next := cut(all, limit, "session", func(s *puntuale.Session) int64 { return int64(s.ID) })
	return all, next, nil
}

// sessionThere refuses a session that is not the client's; 0, the default one, always is.
func (t tenant) sessionThere(ctx context.Context, a asker, id puntuale.SessionID) error {
	if id == 0 {
		return nil
	}
	var n int64
	found, err := one(ctx, a, `select id from session where client_id = $1 and id = $2 and deleted_at = 0`, []any{t.id, id}, &n)
	return foundOr(found, err, "session")
}
