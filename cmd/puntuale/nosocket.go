//go:build nosocket

package main

import "puntuale/internal/auth"

const socketBuilt = false

func newSocket(*server, serverConfig, *auth.Vault) socketWay { return nil }
