// Package transfer copies a database between a data directory and a PostgreSQL database, in both directions.
//
// A copy has these steps, and continues after a kill at any point:
//
//   - The target gets the schema, and a table that marks it as incomplete, so that no server uses it.
//   - Each table is copied in batches, in the order of its primary key. The last key in the target says where to continue.
//   - Counts and digests of all tables of both sides are compared. Both sides are read again for that.
//   - The finished target is checked like any other database: audit trail, signed head, references, records.
//   - The mark of the incomplete database is removed.
//
// Rows are copied as they are stored. Sealed values and the audit trail depend on the master key, so that the target has the
// master key of the source. Rows that belong to an engine are not copied. Memory does not depend on the size of the database,
// but for the largest row.
//
// The package verifies that no process uses the source or the target when it begins, and that the source is the same at the end.
package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"kontor/store/inspect"
)

// The reasons for which a copy is rejected.
var (
	// ErrInUse says that a server uses the source or the target.
	ErrInUse = errors.New("it must not be served during a copy")
	// ErrNotEmpty says that the target holds data.
	ErrNotEmpty = errors.New("a copy needs an empty target")
	// ErrOtherSource says that the target holds an interrupted copy of another source, or of an earlier state of it.
	ErrOtherSource = errors.New("it holds an interrupted copy of other data")
	// ErrOtherSchema says that the source has not the schema of this program.
	ErrOtherSchema = errors.New("it has not the schema of this program")
	// ErrDiffers says that a table of the target differs from the source.
	ErrDiffers = errors.New("the copy differs from its source")
	// ErrChanged says that the source was changed during the copy.
	ErrChanged = errors.New("the source was changed during the copy")
	// ErrErasures says that erasures are to be repeated in the source.
	ErrErasures = errors.New("erasures must be repeated first")
	// ErrNotStorable says that PostgreSQL cannot store a text of the source.
	ErrNotStorable = errors.New("PostgreSQL cannot store it")
)

// Place is a data directory or, with URL, a PostgreSQL database.
type Place struct {
	Dir  string
	URL  string
	Name string // for messages; without a password
}

// Options say what is copied where.
type Options struct {
	From, To Place
	// SecretKey is the master key in hexadecimal or base64. It is required for a database with a URL; for a directory the key
	// in it is used without one. PreviousKey is the master key before it.
	SecretKey, PreviousKey string
	// Migrations are the schema.
	Migrations fs.FS
	// Further is a check of the finished target that only the modules can do; nil: none.
	Further inspect.Further
	// Progress is called now and then; nil: never.
	Progress func(Progress)
}

// Progress is how far a copy has come.
type Progress struct {
	Step  Step
	Table string
	Rows  int64 // of Table that are done
	Of    int64 // rows of Table
}

// Step is a step of a copy.
type Step int

// The steps, in their order.
const (
	Copying Step = iota
	Comparing
	Checking
)

// Report says what was copied.
type Report struct {
	Tables  []TableReport
	Resumed bool // an interrupted copy was continued
	Check   inspect.Report
}

// TableReport is the content of a table, which is the same on both sides.
type TableReport struct {
	Name   string
	Rows   int64
	Digest string // SHA-256 of all rows in the order of the primary key
}

// Rows returns the number of rows in all tables.
func (r Report) Rows() (rows int64) {
	for _, t := range r.Tables {
		rows += t.Rows
	}
	return rows
}

// Run copies a database. Its errors name the place, are one sentence and say what to do. After an error the target is not usable,
// and the same call continues.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if (o.From.URL == "") == (o.To.URL == "") {
		return report, errors.New("a copy goes from a data directory to a PostgreSQL database or back; for a copy of the same kind use \"kontor backup\" or pg_dump")
	}
	from, err := openSource(ctx, &o)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openTarget(ctx, &o)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if report.Resumed, err = to.begin(ctx, from.identity()); err != nil {
		return report, err
	}
	c := &copier{from: from, to: to, progress: o.Progress}
	if err := c.describe(ctx); err != nil {
		return report, err
	}
	if err := c.copyAll(ctx); err != nil {
		return report, err
	}
	if report.Tables, err = c.compareAll(ctx); err != nil {
		return report, err
	}
	if err := from.unchanged(ctx); err != nil {
		return report, err
	}
	if o.Progress != nil {
		o.Progress(Progress{Step: Checking})
	}
	report.Check, err = to.finish(ctx)
	return report, err
}

func openSource(ctx context.Context, o *Options) (source, error) {
	if o.From.URL != "" {
		return openDatabase(ctx, o)
	}
	return openDirectory(ctx, o)
}

func openTarget(ctx context.Context, o *Options) (target, error) {
	if o.To.URL != "" {
		return newDatabaseTarget(ctx, o)
	}
	return newDirectoryTarget(o)
}

// A source is the side that is read.
type source interface {
	side
	// identity names the database and its state.
	identity() string
	// unchanged returns ErrChanged when the database is not in the state that is copied, and ErrInUse when it is served.
	unchanged(ctx context.Context) error
	Close() error
}

// A target is the side that is filled.
type target interface {
	side
	// begin creates the schema of an empty target, or continues an interrupted copy of the source with this identity.
	begin(ctx context.Context, identity string) (resumed bool, err error)
	// insert adds rows to a table, all or none.
	insert(ctx context.Context, t *table, batch [][]any) error
	// finish checks the database and makes it usable.
	finish(ctx context.Context) (inspect.Report, error)
	Close() error
}

func (p Place) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.Name, err)
}

// progressRows is the number of rows between two reports of the progress.
const progressRows = 10_000

// copier copies the tables.
type copier struct {
	from     source
	to       target
	tables   []*table
	progress func(Progress)
}

// copyAll copies what the target lacks of all tables.
func (c *copier) copyAll(ctx context.Context) error {
	for _, t := range c.tables {
		if err := c.copyTable(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) copyTable(ctx context.Context, t *table) error {
	total, err := t.count(ctx, c.from)
	if err != nil {
		return err
	}
	done, err := t.count(ctx, c.to)
	if err != nil {
		return err
	}
	last, err := t.last(ctx, c.to)
	if err != nil {
		return err
	}
	report := c.reporter(Progress{Step: Copying, Table: t.name, Rows: done, Of: total})
	for batch, err := range t.batches(ctx, c.from, last) {
		if err != nil {
			return err
		}
		if err := c.to.insert(ctx, t, batch); err != nil {
			return fmt.Errorf("write to %s: %w", t.name, err)
		}
		report(int64(len(batch)))
	}
	return ctx.Err()
}

// reporter returns a function that counts rows and reports the progress of a table now and then, and at once.
func (c *copier) reporter(p Progress) func(rows int64) {
	if c.progress == nil {
		return func(int64) {}
	}
	c.progress(p)
	reported := p.Rows
	return func(rows int64) {
		p.Rows += rows
		if p.Rows-reported >= progressRows || p.Rows == p.Of {
			reported = p.Rows
			c.progress(p)
		}
	}
}

// compareAll compares counts and digests of all tables.
func (c *copier) compareAll(ctx context.Context) ([]TableReport, error) {
	reports := make([]TableReport, 0, len(c.tables))
	for _, t := range c.tables {
		report, err := c.compare(ctx, t)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

func (c *copier) compare(ctx context.Context, t *table) (TableReport, error) {
	total, err := t.count(ctx, c.from)
	if err != nil {
		return TableReport{}, err
	}
	report := c.reporter(Progress{Step: Comparing, Table: t.name, Of: total})
	var here, there TableReport
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) { here, err = t.digest(ctx, c.from, report); return err })
	both.Go(func() (err error) { there, err = t.digest(ctx, c.to, func(int64) {}); return err })
	if err := both.Wait(); err != nil {
		return here, err
	}
	switch {
	case here.Rows != there.Rows:
		return here, fmt.Errorf("%s has %d rows in the source and %d in the target: %w", t.name, here.Rows, there.Rows, ErrDiffers)
	case here.Digest != there.Digest:
		return here, fmt.Errorf("%s has the digest %.16s in the source and %.16s in the target: %w", t.name, here.Digest, there.Digest, ErrDiffers)
	}
	return here, nil
}

// digest reads a whole table.
func (t *table) digest(ctx context.Context, s side, report func(int64)) (TableReport, error) {
	hash := sha256.New()
	var text []byte
	rows := int64(0)
	for row, err := range t.rows(ctx, s, nil) {
		if err != nil {
			return TableReport{}, err
		}
		rows++
		report(1)
		text = appendRow(text[:0], row)
		hash.Write(text)
	}
	return TableReport{Name: t.name, Rows: rows, Digest: hex.EncodeToString(hash.Sum(nil))}, nil
}

// appendRow appends the form of a row that is digested. No two rows of a table have the same form.
func appendRow(b []byte, row []any) []byte {
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 0)
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 1), uint64(v))
		case bool:
			b = fmt.Appendf(b, "%t", v)
		case string:
			b = append(binary.BigEndian.AppendUint64(append(b, 2), uint64(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint64(append(b, 2), uint64(len(v))), v...)
		}
	}
	return b
}
