package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

// wordsTable is the full-text index (FTS5) of engine.TextIndex. SQLite keeps its data in tables whose names continue with _data, _idx
// and so on. The index holds no texts of its own; triggers keep it current. With secure-delete, words that are removed leave its
// bytes at once. The index for prefixes counts the mark of the source, the first character of every word.
const wordsTable = "kontor_words"

// wordsSchema returns the statements that create the index of a table, and its triggers, empty.
func wordsSchema(x *engine.TextIndex) []string {
	replace := strings.NewReplacer("{words}", wordsTable, "{table}", x.Table, "{number}", x.Number, "{columns}", strings.Join(x.Columns, ", "),
		"{new}", "new."+strings.Join(x.Columns, ", new."), "{old}", "old."+strings.Join(x.Columns, ", old."), "{progress}", x.Progress)
	const remove = `INSERT INTO {words} ({words}, rowid, {columns}) VALUES ('delete', old.{number}, {old});`
	const add = `INSERT INTO {words} (rowid, {columns}) VALUES (new.{number}, {new});`
	statements := []string{
		`DROP TRIGGER IF EXISTS {words}_insert`, `DROP TRIGGER IF EXISTS {words}_delete`, `DROP TRIGGER IF EXISTS {words}_update`,
		`DROP TABLE IF EXISTS {words}`,
		`DELETE FROM {table}`, `DELETE FROM {progress}`,
		`CREATE VIRTUAL TABLE {words} USING fts5({columns}, content='{table}', content_rowid='{number}', tokenize='ascii', detail='none', columnsize=0, prefix='2 3')`,
		`INSERT INTO {words} ({words}, rank) VALUES ('secure-delete', 1)`,
		`CREATE TRIGGER {words}_insert AFTER INSERT ON {table} BEGIN ` + add + ` END`,
		`CREATE TRIGGER {words}_delete AFTER DELETE ON {table} BEGIN ` + remove + ` END`,
		`CREATE TRIGGER {words}_update AFTER UPDATE ON {table} BEGIN ` + remove + ` ` + add + ` END`,
	}
	for i := range statements {
		statements[i] = replace.Replace(statements[i])
	}
	return statements
}

const selectWordsParts = `SELECT COUNT(*) FROM sqlite_schema WHERE name IN (
	'` + wordsTable + `', '` + wordsTable + `_insert', '` + wordsTable + `_delete', '` + wordsTable + `_update')`

// wordsParts is the number of names in selectWordsParts.
const wordsParts = 4

// restoreWords creates the full-text index if a part of it is missing, as after a restore of a copy without it. The table is
// emptied then, to be filled again.
func restoreWords(ctx context.Context, conn *binding.Conn, x *engine.TextIndex) error {
	if x == nil {
		return nil
	}
	var found int64
	if err := query.NewRow(ctx, source{conn}, selectWordsParts, nil).Scan(&found); err != nil || found == wordsParts {
		return err
	}
	return source{conn}.Transact(func() error {
		for _, sql := range wordsSchema(x) {
			if err := conn.Run(sql); err != nil {
				return fmt.Errorf("create the full-text index: %w", translate(err))
			}
		}
		return nil
	})
}

// wordsDamaged reports whether a check has found damage of the full-text index alone. It is derived, and is created again.
func wordsDamaged(err error) bool {
	return errors.Is(err, engine.ErrCorrupt) && strings.Contains(err.Error(), wordsTable)
}

// resetWords creates the full-text index again, empty. Its table is filled again.
func (e *Engine) resetWords(ctx context.Context) error {
	e.log.Warn("the full-text index is damaged; it is created again, and records are indexed in the background")
	return e.Write(ctx, func(tx engine.Tx) error {
		for _, sql := range wordsSchema(e.config.Texts) {
			if _, err := query.Exec(ctx, tx, sql, nil); err != nil {
				return fmt.Errorf("create the full-text index: %w", err)
			}
		}
		return nil
	})
}

const (
	selectMatching = `SELECT rowid FROM ` + wordsTable + ` WHERE ` + wordsTable + ` MATCH $1`
	selectSome     = selectMatching + ` ORDER BY rowid DESC LIMIT $2`
)

// Texts returns how statements search the full-text index.
func (e *Engine) Texts() engine.TextSearch {
	return engine.TextSearch{Matching: selectMatching, Some: selectSome, Expression: matchExpression}
}

// matchExpression returns a query in the language of FTS5. Words are quoted, so that none is an operator.
func matchExpression(q engine.TextQuery) string {
	var b strings.Builder
	for i, alternative := range q {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteByte('(')
		for j, word := range alternative.Words {
			if j > 0 {
				b.WriteString(" AND ")
			}
			b.WriteString(`"` + strings.ReplaceAll(word, `"`, `""`) + `"`)
		}
		if alternative.Prefix {
			b.WriteString(" *")
		}
		b.WriteByte(')')
	}
	return b.String()
}
