package store_test

import (
	"testing"

	"puntuale/internal/store/storetest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Postgres)
	storetest.RunManyWriters(t, storetest.Postgres)
}
