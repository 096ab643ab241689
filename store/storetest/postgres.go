package storetest

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/postgres/postgrestest"
)

// masterKey is the master key of all databases on PostgreSQL, which have no directory to keep it in.
var masterKey = strings.Repeat("5eed", 16)

// postgresOptions returns the options of a fresh, migrated database on PostgreSQL. It is dropped at the end of the test.
func postgresOptions(t testing.TB) store.Options {
	t.Helper()
	address := postgrestest.Copy(t, "kontor", func(address string) error {
		db, err := store.Open(context.Background(), store.Options{URL: address, SecretKey: masterKey, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return db.Close()
	})
	return store.Options{URL: address, SecretKey: masterKey}
}
