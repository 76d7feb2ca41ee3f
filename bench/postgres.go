package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver for PostgreSQL
	_ "modernc.org/sqlite"             // the driver for SQLite
)

var databases atomic.Int64

// freshPostgres creates a database. If template is not "", it is the name of the database to copy. freshPostgres
// returns the database's name, its address and a function that drops it.
func (b *bench) freshPostgres(ctx context.Context, template string) (name, address string, drop func(), err error) {
	db, err := sql.Open("pgx", b.address)
	if err != nil {
		return "", "", nil, err
	}
	defer db.Close()
	name = fmt.Sprintf("bench_%d_%d", time.Now().Unix(), databases.Add(1))
	text := "create database " + name
	if template != "" {
		text += " template " + template + " strategy file_copy"
	}
	if _, err := db.ExecContext(ctx, text); err != nil {
		return "", "", nil, fmt.Errorf("create a database: %w", err)
	}
	u, err := url.Parse(b.address)
	if err != nil {
		return "", "", nil, err
	}
	u.Path = "/" + name
	return name, u.String(), func() { b.admin("drop database if exists " + name + " with (force)") }, nil
}

// admin runs a statement on the server, to clean up. It ignores errors, because the cluster is removed later.
func (b *bench) admin(text string) {
	db, err := sql.Open("pgx", b.address)
	if err != nil {
		return
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	_, _ = db.ExecContext(ctx, text)
}

// calm waits until the database has written the data of an earlier measurement to disk.
func (b *bench) calm(engine string) {
	if engine == postgres {
		b.admin("checkpoint")
	}
}

// plain opens a database without the product's store, with full durability.
func plain(engine, address string) (*sql.DB, error) {
	if engine == postgres {
		return sql.Open("pgx", address)
	}
	return sql.Open("sqlite", "file:"+address+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)"+
		"&_pragma=cache_size(-65536)&_pragma=temp_store(memory)&_txlock=immediate")
}
