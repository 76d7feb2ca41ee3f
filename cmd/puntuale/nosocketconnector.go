//go:build nosocket

package main

import (
	"context"
	"database/sql"

	"puntuale/internal/auth"
)

const socketBuilt = false

// makeNumbers makes the tables of linked numbers. It is nil in this build, because the library for linked numbers is
// left out.
var makeNumbers func(context.Context, *sql.DB, bool) error

func newSocket(*server, serverConfig, *auth.Vault) socketWay { return nil }
