package enginetest

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"kontor/store/engine"
)

// refusing is a guard that rejects a database at its start.
type refusing struct {
	guard
	recognise, settle error
}

func (r refusing) Recognise(context.Context, engine.Source) (bool, error) { return true, r.recognise }
func (r refusing) Settle(context.Context, engine.Maintenance) error       { return r.settle }

// opening tests what an engine does before it serves.
var opening = map[string]func(*testing.T, *database){
	"a database of a newer program is refused": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		none(t, "close", db.Close())
		c := db.config(t)
		c.Migrations = fstest.MapFS{}
		_, _, err := db.open(t.Context(), c)
		is(t, "open", err, engine.ErrNewerSchema)
		db.start(t)
		db.has(t, 1, "a")
	},
	"new migrations are applied once": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		for range 2 {
			none(t, "close", db.Close())
			c := db.config(t)
			c.Migrations = fstest.MapFS{
				"0001_tables.sql": {Data: []byte(schema)},
				"0002_more.sql":   {Data: []byte("-- +goose Up\nUPDATE items SET amount = amount + 1;\n-- +goose Down\nSELECT 1;\n")},
			}
			e, _, err := db.open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			db.Engine = e
		}
		var amount int
		none(t, "read", db.queryRow(t.Context(), `SELECT amount FROM items`).Scan(&amount))
		if amount != 1 {
			t.Errorf("the migration was applied %d times", amount)
		}
	},
	"a migration that fails changes nothing": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		none(t, "close", db.Close())
		c := db.config(t)
		c.Migrations = fstest.MapFS{
			"0001_tables.sql": {Data: []byte(schema)},
			"0002_wrong.sql":  {Data: []byte("-- +goose Up\nDELETE FROM items;\nINSERT INTO nowhere VALUES (1);\n-- +goose Down\nSELECT 1;\n")},
		}
		if _, _, err := db.open(t.Context(), c); err == nil {
			t.Error("a database with a failed migration was opened")
		}
		db.start(t)
		db.has(t, 1, "a")
	},
	"a database that the guard refuses is not opened": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		none(t, "close", db.Close())
		errGuard := errors.New("rejected by the guard")
		for name, refuses := range map[string]refusing{
			"Recognise": {recognise: errGuard},
			"Settle":    {settle: errGuard},
		} {
			c := db.config(t)
			c.Guard = func(fresh bool) (engine.Guard, error) {
				if fresh {
					t.Error("an existing database counts as new")
				}
				refuses.guard = guard{&ledger{}}
				return refuses, nil
			}
			_, _, err := db.open(t.Context(), c)
			is(t, name, err, errGuard)
		}
		c := db.config(t)
		c.Guard = func(bool) (engine.Guard, error) { return nil, errGuard }
		_, _, err := db.open(t.Context(), c)
		is(t, "Guard", err, errGuard)
		db.start(t)
		db.has(t, 1, "a")
	},
}
