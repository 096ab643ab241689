package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

// trigger protects an append-only table. Triggers are written differently for every engine, so they are no migration.
type trigger struct{ name, sql string }

// appendOnlyTriggers returns the triggers of a table that reject updates and deletions. The message calls the rows after
// the table.
func appendOnlyTriggers(table string) []trigger {
	rows := strings.ReplaceAll(table, "_", " ")
	reject := func(name, event string) trigger {
		return trigger{table + name, `CREATE TRIGGER ` + table + name + ` BEFORE ` + event + ` ON ` + table + `
		BEGIN SELECT RAISE(ABORT, '` + rows + ` are append-only'); END`}
	}
	return []trigger{reject("_no_update", "UPDATE"), reject("_no_delete", "DELETE")}
}

const selectTrigger = `SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = $1 AND name = $2`

// missingTriggers returns the triggers that are missing or were replaced.
func missingTriggers(ctx context.Context, s engine.Source, tables []string) (missing []trigger, err error) {
	for _, table := range tables {
		for _, want := range appendOnlyTriggers(table) {
			var text string
			err := query.NewRow(ctx, s, selectTrigger, []any{table, want.name}).Scan(&text)
			if err != nil && !errors.Is(err, engine.ErrNotFound) {
				return nil, err
			}
			if !slices.Equal(strings.Fields(text), strings.Fields(want.sql)) {
				missing = append(missing, want)
			}
		}
	}
	return missing, nil
}

func triggerNames(triggers []trigger) (names []string) {
	for _, t := range triggers {
		names = append(names, t.name)
	}
	return names
}

// restoreTriggers creates missing triggers and returns their names.
func restoreTriggers(ctx context.Context, conn *binding.Conn, tables []string) (names []string, err error) {
	missing, err := missingTriggers(ctx, source{conn}, tables)
	if err != nil {
		return nil, err
	}
	for _, t := range missing {
		for _, sql := range []string{"DROP TRIGGER IF EXISTS " + t.name, t.sql} {
			if err := conn.Run(sql); err != nil {
				return nil, translate(err)
			}
		}
	}
	return triggerNames(missing), nil
}

// Unprotected returns the names of the triggers of append-only tables that are missing or were replaced. Without them a
// statement can change or delete rows.
func (e *Engine) Unprotected(ctx context.Context, s engine.Source) ([]string, error) {
	missing, err := missingTriggers(ctx, s, e.appendOnly)
	return triggerNames(missing), err
}
