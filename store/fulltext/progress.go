package fulltext

import (
	"context"
	"errors"

	"kontor/store/engine"
	"kontor/store/query"
)

// trail is the name of the progress along the audit trail.
const trail = ""

// Progress is how far the documents have come. Name is a source that is being read for the first time, or empty for the audit
// trail.
type Progress struct {
	Name     string
	Position string // the last id that was read
	Seq      int64  // the last audit entry that was read
	Removals int64  // of the trail: how often documents were removed at once
	Done     bool
}

const (
	selectProgress = `SELECT name, position, seq, removals, done FROM search_progress ORDER BY name`

	selectRemovals = `SELECT seq, removals FROM search_progress WHERE name = ''`

	selectPosition = `SELECT position, done FROM search_progress WHERE name = $1`

	upsertProgress = `
		INSERT INTO search_progress (name, position, seq, removals, done) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (name) DO UPDATE SET position = excluded.position, seq = excluded.seq, removals = excluded.removals, done = excluded.done`

	countRemoval = `UPDATE search_progress SET removals = removals + 1 WHERE name = ''`
)

// ReadProgress returns the progress along the trail and of all sources. known is false for documents that were never begun.
func ReadProgress(ctx context.Context, q query.Querier) (alongTrail Progress, sources map[string]Progress, known bool, err error) {
	sources = map[string]Progress{}
	rows, err := q.Query(ctx, selectProgress)
	if err != nil {
		return alongTrail, nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var p Progress
		if err := rows.Scan(&p.Name, &p.Position, &p.Seq, &p.Removals, &p.Done); err != nil {
			return alongTrail, nil, false, err
		}
		if p.Name == trail {
			alongTrail, known = p, true
		} else {
			sources[p.Name] = p
		}
	}
	return alongTrail, sources, known, rows.Err()
}

// Begin records that the documents follow the trail after an entry. It does nothing if another process has begun. Sources are read
// from their beginning.
func Begin(ctx context.Context, tx engine.Source, seq int64) error {
	var at, removals int64
	err := query.NewRow(ctx, tx, selectRemovals, nil).Scan(&at, &removals)
	if !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	return Progress{Name: trail, Seq: seq, Done: true}.write(ctx, tx)
}

func (p Progress) write(ctx context.Context, tx engine.Source) error {
	_, err := query.Exec(ctx, tx, upsertProgress, []any{p.Name, p.Position, p.Seq, p.Removals, p.Done})
	return err
}

// Advance writes changes with the progress after them, if the progress before them is still that of the database. moved is false
// if it is not: another process was faster, or documents were removed. The changes must be compared again then.
func Advance(ctx context.Context, tx engine.Source, alongTrail, before, after Progress, changes []Change) (moved bool, err error) {
	var seq, removals int64
	if err := query.NewRow(ctx, tx, selectRemovals, nil).Scan(&seq, &removals); err != nil {
		return false, err
	}
	if seq != alongTrail.Seq || removals != alongTrail.Removals {
		return false, nil
	}
	if before.Name != trail {
		var position string
		var done bool
		err := query.NewRow(ctx, tx, selectPosition, []any{before.Name}).Scan(&position, &done)
		if err != nil && !errors.Is(err, engine.ErrNotFound) { // a source that was never begun has no row
			return false, err
		}
		if position != before.Position || done {
			return false, nil
		}
	}
	for i := range changes {
		if err := changes[i].Write(ctx, tx); err != nil {
			return false, err
		}
	}
	return true, after.write(ctx, tx)
}
