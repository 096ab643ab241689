package imports

import (
	"context"
	"errors"

	"kontor/server/apierr"
	"kontor/store"
)

const (
	selectRow = `SELECT record_id FROM import_rows WHERE owner_id = $1 AND sha256 = $2 AND line = $3`

	insertRow = `INSERT INTO import_rows (owner_id, sha256, line, record_id, created_at) VALUES ($1, $2, $3, $4, $5)`

	// The rows of a batch count only if no other process has come further.
	advanceImport = `
		UPDATE imports SET done = done + $3, created = created + $4, updated = updated + $5, duplicates = duplicates + $6,
			rejected = rejected + $7, rejections = rejections + $8
		WHERE id = $1 AND done = $2 AND state = 'running'`

	endImport = `
		UPDATE imports SET state = $2, failure = $3, failure_args = $4, finished_at = $5, key_sealed = ''
		WHERE id = $1 AND (state = 'queued' OR state = 'running')`

	insertRejection = `
		INSERT INTO import_rejections (import_id, number, line, field, text_key, text_args, record_id) VALUES ($1, $2, $3, $4, $5, $6, $7)`
)

// errSuperseded reports that another process has written the batch, or that the import has ended.
var errSuperseded = errors.New("the import has come further")

// write imports a batch: all rows up to one that updates a record in one transaction, and that one in a transaction of its own.
func (j *job) write(ctx context.Context, rows []prepared) error {
	for len(rows) > 0 {
		var n tally
		var target string // the record that the row after the batch updates
		err := j.db.InTx(ctx, func(tx *store.Tx) (err error) {
			n, target = tally{}, "" // the transaction may run twice
			for i := range rows {
				p := rows[i] // a copy: a rejection of this run does not last
				if target, err = j.writeRow(ctx, tx, &p, &n); err != nil || target != "" || n.failure != nil {
					break
				}
			}
			if err != nil || n.done == 0 {
				return err
			}
			return j.advance(ctx, tx, n)
		})
		if err != nil {
			return ignoreSuperseded(err)
		}
		j.count(n)
		rows = rows[n.done:]
		if n.failure != nil {
			return j.fail(ctx, n.failure)
		}
		if target != "" {
			if err := j.update(ctx, target, rows[0]); err != nil {
				return ignoreSuperseded(err)
			}
			rows = rows[1:]
		}
	}
	return nil
}

// writeRow creates the record of a row, unless it is rejected or a duplicate. It returns the record that the row updates instead.
func (j *job) writeRow(ctx context.Context, tx *store.Tx, p *prepared, n *tally) (target string, err error) {
	id := ""
	if p.row != nil {
		if id, err = j.same(ctx, tx, p); err != nil {
			return "", err
		}
	}
	switch {
	case p.row == nil:
		n.refused(p)
	case id != "" && j.row.OnDuplicate == update:
		return id, nil
	case id != "":
		j.duplicate(p, id, n)
	default:
		id, err := p.row.Create(ctx, tx)
		if errors.Is(err, apierr.QuotaExceeded) { // nothing was written, and the further rows would exceed it too
			n.failure = err
			return "", nil
		}
		if err == nil {
			_, err = tx.Exec(ctx, insertRow, j.row.CreatedBy, j.row.SHA256, p.line, id, tx.Now())
		}
		if err != nil {
			return "", err
		}
		n.created++
	}
	n.done++
	return "", nil
}

// update updates a record by a row.
func (j *job) update(ctx context.Context, id string, p prepared) error {
	n := tally{done: 1, updated: 1}
	err := p.row.Update(ctx, id, func(tx *store.Tx) error { return j.advance(ctx, tx, n) })
	if errors.Is(err, apierr.QuotaExceeded) {
		return j.fail(ctx, err)
	}
	if err != nil && !errors.Is(err, errSuperseded) {
		if err := p.refuse(err); err != nil {
			return err
		}
		n = tally{done: 1}
		n.refused(&p)
		err = j.db.InTx(ctx, func(tx *store.Tx) error { return j.advance(ctx, tx, n) })
	}
	if err == nil {
		j.count(n)
	}
	return err
}

// advance stores how far the import has come, and what was rejected.
func (j *job) advance(ctx context.Context, tx *store.Tx, n tally) error {
	kept := n.rejections[:min(int64(len(n.rejections)), max(0, maxRejections-j.row.rejections))]
	changed, err := tx.Exec(ctx, advanceImport, j.row.ID, j.row.Done, n.done, n.created, n.updated, n.duplicates, n.rejected, len(kept))
	if err != nil {
		return err
	}
	if changed == 0 {
		return errSuperseded
	}
	for i, r := range kept {
		if _, err := tx.Exec(ctx, insertRejection, j.row.ID, j.row.rejections+int64(i), r.line, r.field, r.key, encoded(r.args), r.recordID); err != nil {
			return err
		}
	}
	return nil
}

// count adds a batch that was written to what is known of the import.
func (j *job) count(n tally) {
	j.row.Done += n.done
	j.row.Created += n.created
	j.row.Duplicates += n.duplicates
	j.row.rejections = min(j.row.rejections+int64(len(n.rejections)), maxRejections)
}

// try counts what a batch would do, with the records as they are and those that the rows before would have created.
func (j *job) try(ctx context.Context, rows []prepared) error {
	var n tally
	for i := range rows {
		if err := j.tryRow(ctx, &rows[i], &n); err != nil {
			return err
		}
		if n.failure != nil {
			break
		}
	}
	if n.done > 0 {
		if err := j.db.InTx(ctx, func(tx *store.Tx) error { return j.advance(ctx, tx, n) }); err != nil {
			return ignoreSuperseded(err)
		}
		j.count(n)
	}
	if n.failure != nil {
		return j.fail(ctx, n.failure)
	}
	return nil
}

// tryRow counts what writeRow or update would do with a row.
func (j *job) tryRow(ctx context.Context, p *prepared, n *tally) error {
	id, repeated := "", false
	if p.row != nil {
		var err error
		if id, err = j.same(ctx, j.db, p); err != nil {
			return err
		}
	}
	if p.row != nil && p.row.ExternalID() != "" {
		repeated = j.trial.seen[digestOf(p.row.ExternalID())]
	}
	switch {
	case p.row == nil:
		n.refused(p)
	case id != "" && j.row.OnDuplicate == update:
		if err := p.row.CheckUpdate(ctx, j.db, id); err == nil {
			n.updated++
		} else if err := p.refuse(err); err != nil {
			return err
		} else {
			n.refused(p)
		}
	case repeated && j.row.OnDuplicate == update:
		n.updated++
	case id != "" || repeated:
		j.duplicate(p, id, n)
	default:
		if err := p.row.Fits(ctx, j.db, j.row.Created+n.created, j.trial.weight); errors.Is(err, apierr.QuotaExceeded) {
			n.failure = err
			return nil
		} else if err != nil {
			return err
		}
		j.trial.weight += p.row.Weight()
		if p.row.ExternalID() != "" {
			j.trial.seen[digestOf(p.row.ExternalID())] = true
		}
		n.created++
	}
	n.done++
	return nil
}

// finish ends an import whose rows were all read.
func (j *job) finish(ctx context.Context) error { return j.end(ctx, done, "imports.done", nil) }

// fail ends an import by an error that its owner reads.
func (j *job) fail(ctx context.Context, err error) error {
	return j.end(ctx, failed, "imports.failed", apierr.Of(err))
}

// end ends an import. From then on its file cannot be read any more.
func (j *job) end(ctx context.Context, state, action string, failure *apierr.Error) error {
	code, args := "", ""
	if failure != nil {
		code, args = failure.Code, encoded(failure.Args)
	}
	err := j.db.InTx(ctx, func(tx *store.Tx) error {
		changed, err := tx.Exec(ctx, endImport, j.row.ID, state, code, args, tx.Now())
		if err == nil && changed > 0 {
			tx.Audit(store.AuditEntry{Actor: j.row.CreatedBy, Action: action, RecType: importsTable, RecID: j.row.ID})
		}
		return err
	})
	if err != nil {
		return err
	}
	return j.deleteChunks(ctx, j.row.ID)
}

// ignoreSuperseded returns nil for a batch that another process has written: the next turn reads the import again.
func ignoreSuperseded(err error) error {
	if errors.Is(err, errSuperseded) {
		return nil
	}
	return err
}
