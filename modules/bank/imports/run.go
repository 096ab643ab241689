package imports

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// batch is the number of rows of one transaction. Other writes of the same group wait for them, a few milliseconds.
	batch = 16
	// maxOpen is the number of imports that are read at the same time, in turn.
	maxOpen = 8
	// maxTries is how often in a row a batch may fail by an error of the server before the import fails.
	maxTries = 5
)

const selectWaiting = `SELECT ` + columns + ` FROM imports WHERE state = 'queued' OR state = 'running' ORDER BY id LIMIT $1`

// Run imports the rows of all files that wait, and returns when none is left. One node at a time runs it. Should two do so for a moment,
// the second one to write a batch finds that the import has come further.
func (s *Service) Run(ctx context.Context) error {
	open := map[string]*job{}
	for ctx.Err() == nil && s.db.Leads() && s.db.Remembers() && !s.TermsDue() {
		waiting, err := store.All(ctx, s.db, scan, selectWaiting, maxOpen)
		if err != nil {
			return fmt.Errorf("read the imports: %w", err)
		}
		if len(waiting) == 0 {
			return nil
		}
		current := map[string]*job{}
		for _, i := range waiting {
			j := open[i.ID]
			if j == nil || j.row.Done != i.Done {
				j = &job{Service: s}
			}
			j.row = i
			current[i.ID] = j
			if err := s.turn(ctx, j); err != nil {
				return err
			}
		}
		open = current
	}
	return nil
}

// turn does the next batch of an import. A batch that fails for a reason of the server is tried again; the import fails after a few times.
func (s *Service) turn(ctx context.Context, j *job) error {
	err := j.step(ctx)
	if err == nil || ctx.Err() != nil {
		j.tries = 0
		return nil //nolint:nilerr // the next start continues
	}
	j.table = nil // read again from the last row that was written
	if apierr.Of(err).Temporary() && !errors.Is(err, apierr.ServerError) && !errors.Is(err, apierr.DatabaseError) {
		return err // the next run continues
	}
	if j.tries++; j.tries < maxTries {
		return nil // the next turn tries again
	}
	s.Log.Error("an import failed", "import", j.row.ID, "cause", err)
	return j.fail(ctx, apierr.ServerError)
}

// job is an import that is being read.
type job struct {
	*Service
	row     Import
	table   *table
	content *content
	tries   int
	trial   trial
}

// trial is what a dry run would have created so far.
type trial struct {
	seen   map[[16]byte]bool // external ids
	weight int64
}

// tally counts what a batch did.
type tally struct {
	done, created, updated, duplicates, rejected int64
	rejections                                   []rejection
	failure                                      error // ends the import after the batch
}

// step does the next batch.
func (j *job) step(ctx context.Context) error {
	caller, ok, err := j.accounts.CallerOf(ctx, j.db, j.row.CreatedBy)
	if err != nil {
		return err
	}
	if ok {
		caller = caller.WithPolicy(j.Policy.Load())
	}
	if !ok || !j.records.MayImport(caller, j.row.OnDuplicate == update) {
		return j.fail(ctx, apierr.NoAccess)
	}
	ctx = endpoint.With(access.With(ctx, caller), &endpoint.Info{Caller: caller, Language: "en", AuditID: j.row.ID, Now: j.db.Now().Std()})
	if j.table == nil {
		if err := j.open(ctx); err != nil {
			return err
		}
	}
	j.content.ctx = ctx
	var rows []prepared
	for len(rows) < batch {
		row, err := j.table.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read a file that was a table when it arrived: %w", err)
		}
		one, err := j.prepare(ctx, row)
		if err != nil {
			return err
		}
		rows = append(rows, one)
	}
	if len(rows) == 0 {
		return j.finish(ctx)
	}
	if j.row.DryRun {
		return j.try(ctx, rows)
	}
	return j.write(ctx, rows)
}

const startImport = `UPDATE imports SET state = 'running', started_at = COALESCE(started_at, $2) WHERE id = $1 AND (state = 'queued' OR state = 'running')`

const (
	restartTrial = `
		UPDATE imports SET done = 0, created = 0, updated = 0, duplicates = 0, rejected = 0, rejections = 0
		WHERE id = $1 AND state = 'running'`

	deleteRejections = `DELETE FROM import_rejections WHERE import_id = $1`
)

// open opens the file behind the last row that was written. A dry run begins again: what it would have created is nowhere else.
func (j *job) open(ctx context.Context) error {
	if err := j.records.Begin(ctx); err != nil {
		return err
	}
	err := j.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(ctx, startImport, j.row.ID, tx.Now()); err != nil || !j.row.DryRun {
			return err
		}
		if _, err := tx.Exec(ctx, deleteRejections, j.row.ID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, restartTrial, j.row.ID)
		return err
	})
	if err != nil {
		return err
	}
	if j.row.DryRun {
		j.row.Done, j.row.Created, j.row.rejections = 0, 0, 0
		j.trial = trial{seen: map[[16]byte]bool{}}
	}
	if j.content, err = j.openContent(ctx, j.row); err != nil {
		return err
	}
	t, err := openTable(j.content, j.records.Columns())
	for err == nil && t.number < j.row.Done {
		_, err = t.next()
	}
	if err != nil {
		return fmt.Errorf("open a file that was a table when it arrived: %w", err)
	}
	j.table = t
	return nil
}

// prepared is a row that was checked.
type prepared struct {
	tableRow

	row        Row         // nil for a row that is rejected
	rejections []rejection // why
}

// prepare checks a row.
func (j *job) prepare(ctx context.Context, row tableRow) (prepared, error) {
	p := prepared{tableRow: row}
	if row.cells == nil {
		p.reject("", "imports.wrong_cells", apierr.Args{"Count": row.count, "Columns": len(j.table.columns)})
		return p, nil
	}
	checked, err := j.records.Prepare(ctx, row.cells)
	if err != nil {
		return p, p.refuse(err)
	}
	p.row = checked
	return p, nil
}

// reject notes why the row is rejected.
func (p *prepared) reject(field, key string, args apierr.Args) {
	p.row = nil
	p.rejections = append(p.rejections, rejection{line: p.line, field: field, key: key, args: args})
}

// refuse rejects the row for an error about the request that it stands for. Other errors are returned.
func (p *prepared) refuse(err error) error {
	e := apierr.Of(err)
	if e.Status >= 500 || e.Status == 429 {
		return err
	}
	if e.Fields.Empty() {
		key := "error." + e.Code
		if e.Reason != "" {
			key += "." + e.Reason
		}
		p.reject("", key, e.Args)
		return nil
	}
	for field, text := range e.Fields.All {
		p.reject(field, text.Key, text.Args)
	}
	return nil
}

// same returns the record that a row would duplicate, or an empty text. It rejects a row with several, because it cannot know which one
// is meant.
func (j *job) same(ctx context.Context, q store.Querier, p *prepared) (id string, err error) {
	earlier, err := store.All(ctx, q, store.Text, selectRow, j.row.CreatedBy, j.row.SHA256, p.line)
	if err != nil || len(earlier) > 0 {
		return first(earlier), err
	}
	if p.row.ExternalID() == "" {
		return "", nil
	}
	found, err := p.row.Same(ctx, q)
	if err == nil && len(found) > 1 && j.row.OnDuplicate == update {
		p.reject("external_id", "imports.several", nil)
	}
	return first(found), err
}

func first(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// maxSkipped is how many skipped rows an import names, so that they leave room for those that were rejected.
const maxSkipped = maxRejections / 2

// duplicate does with a row what was asked for duplicates, but for updates. It notes the record that exists.
func (j *job) duplicate(p *prepared, id string, n *tally) {
	if j.row.OnDuplicate == reject {
		p.reject("external_id", "imports.duplicate", nil)
		p.rejections[len(p.rejections)-1].recordID = id
		n.refused(p)
		return
	}
	if n.duplicates++; j.row.Duplicates+n.duplicates <= maxSkipped {
		n.rejections = append(n.rejections, rejection{line: p.line, field: "external_id", key: "imports.skipped", recordID: id})
	}
}

// refused counts a rejected row.
func (n *tally) refused(p *prepared) {
	n.rejected++
	n.rejections = append(n.rejections, p.rejections...)
}

// digestOf returns the key of an external id in the memory of a dry run.
func digestOf(externalID string) [16]byte {
	sum := sha256.Sum256([]byte(externalID))
	return [16]byte(sum[:16])
}
