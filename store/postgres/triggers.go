package postgres

import (
	"context"
	"errors"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
)

// rejectChange is the body of the function that the triggers of append-only tables call. The message calls the rows after the
// table.
const rejectChange = `BEGIN RAISE EXCEPTION '% are append-only', replace(TG_TABLE_NAME, '_', ' ') USING ERRCODE = 'check_violation'; END`

const createRejectFunction = `CREATE OR REPLACE FUNCTION kontor_append_only() RETURNS trigger LANGUAGE plpgsql AS $kontor$` + rejectChange + `$kontor$`

// appendOnlyEvents are the bits of a trigger that runs before UPDATE, DELETE and TRUNCATE, once for each statement.
const appendOnlyEvents = 2 | 8 | 16 | 32

const selectTrigger = `
	SELECT COUNT(*) FROM pg_trigger t
	JOIN pg_class c ON c.oid = t.tgrelid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_proc p ON p.oid = t.tgfoid
	WHERE n.nspname = current_schema() AND c.relname = $1 AND t.tgname = $2
		AND t.tgenabled = 'A' AND t.tgtype = $3 AND t.tgqual IS NULL AND p.prosrc = $4`

// triggerOf returns the name of the trigger that protects a table.
func triggerOf(table string) string { return table + "_append_only" }

// createTrigger returns the statements that create the trigger of a table, also for sessions that replicate.
func createTrigger(table string) string {
	return strings.NewReplacer("TABLE_NAME", table, "TRIGGER_NAME", triggerOf(table)).Replace(`
		DROP TRIGGER IF EXISTS TRIGGER_NAME ON TABLE_NAME;
		CREATE TRIGGER TRIGGER_NAME BEFORE UPDATE OR DELETE OR TRUNCATE ON TABLE_NAME
			FOR EACH STATEMENT EXECUTE FUNCTION kontor_append_only();
		ALTER TABLE TABLE_NAME ENABLE ALWAYS TRIGGER TRIGGER_NAME;`)
}

// missingTriggers returns the tables whose trigger is missing, disabled or another one.
func missingTriggers(ctx context.Context, s engine.Source, tables []string) (missing []string, err error) {
	for _, table := range tables {
		var found int64
		err := query.NewRow(ctx, s, selectTrigger, []any{table, triggerOf(table), appendOnlyEvents, rejectChange}).Scan(&found)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, err
		}
		if found == 0 {
			missing = append(missing, table)
		}
	}
	return missing, nil
}

// restoreTriggers creates missing triggers and returns their names.
func restoreTriggers(ctx context.Context, m maintenance, tables []string) (names []string, err error) {
	missing, err := missingTriggers(ctx, m, tables)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	if err := m.conn.script(createRejectFunction); err != nil {
		return nil, err
	}
	for _, table := range missing {
		if err := m.conn.script(createTrigger(table)); err != nil {
			return nil, err
		}
	}
	return triggerNames(missing), nil
}

func triggerNames(tables []string) (names []string) {
	for _, table := range tables {
		names = append(names, triggerOf(table))
	}
	return names
}

// Unprotected returns the names of the triggers of append-only tables that are missing, disabled or were replaced. Without them a
// statement can change or delete rows.
func (e *Engine) Unprotected(ctx context.Context, s engine.Source) ([]string, error) {
	missing, err := missingTriggers(ctx, s, e.config.AppendOnly)
	return triggerNames(missing), err
}
