package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"golang.org/x/sync/errgroup"
)

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
