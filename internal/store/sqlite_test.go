package store_test

import (
	"testing"

	"puntuale/internal/store/storetest"
	"puntuale/internal/store/storetest/accounttest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.SQLite)
	accounttest.Run(t, storetest.SQLite)
}
