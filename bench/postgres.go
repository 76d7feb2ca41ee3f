package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// freshPostgres creates a database on the cluster and returns its address and what removes it.
func freshPostgres(ctx context.Context, admin string) (address string, drop func(), err error) {
	db, err := sql.Open("pgx", admin)
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("bench_%d", time.Now().UnixNano())
	if _, err := db.ExecContext(ctx, "create database "+name); err != nil {
		db.Close()
		return "", nil, err
	}
	u, err := url.Parse(admin)
	if err != nil {
		db.Close()
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() {
		_, _ = db.Exec("drop database if exists " + name + " with (force)")
		db.Close()
	}, nil
}
