package store_test

import (
	"testing"

	"puntuale/internal/store/storetest"
	"puntuale/internal/store/storetest/accounttest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Postgres)
	accounttest.Run(t, storetest.Postgres)
	storetest.RunManyWriters(t, storetest.Postgres)
}
