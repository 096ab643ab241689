package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// The bounds of a batch: it is one transaction, and up to three are in memory.
const (
	batchRows  = 5000
	batchBytes = 4 << 20
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

// batch is a number of rows in one piece of memory.
type batch struct {
	values row // of all rows, one after another
	rows   int
	memory []byte
}

// add copies a row into the batch.
func (b *batch) add(r row) {
	for _, v := range r {
		if v.b != nil {
			start := len(b.memory)
			b.memory = append(b.memory, v.b...)
			v.b = b.memory[start:len(b.memory):len(b.memory)]
		}
		b.values = append(b.values, v)
	}
	b.rows++
}

func (b *batch) full() bool { return b.rows >= batchRows || len(b.memory) >= batchBytes }

// row returns row i of a table with a number of columns.
func (b *batch) row(i, columns int) row { return b.values[i*columns : (i+1)*columns] }

// copyAll copies what the target lacks of all tables.
func (c *copier) copyAll(ctx context.Context) error {
	for _, t := range c.tables {
		if err := c.copyTable(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// copyTable reads batches in one goroutine while it writes the previous one.
func (c *copier) copyTable(ctx context.Context, t *table) error {
	total, err := c.from.count(ctx, t)
	if err != nil {
		return err
	}
	last, err := c.to.last(ctx, t)
	if err != nil {
		return err
	}
	done := int64(0)
	if last != nil {
		if done, err = c.to.count(ctx, t); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches, failed := make(chan *batch), make(chan error, 1)
	go func() {
		defer close(batches)
		failed <- c.readBatches(ctx, t, last, batches)
	}()
	report := reporter(c.progress, Progress{Step: Copying, Table: t.name, Rows: done, Of: total})
	for b := range batches {
		if err := c.to.insert(ctx, t, b); err != nil {
			cancel()
			for range batches { // until the reader has ended
			}
			return errors.Join(err, withoutCancel(<-failed))
		}
		report(int64(b.rows))
	}
	return <-failed
}

// withoutCancel returns nil for the end that the caller caused.
func withoutCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *copier) readBatches(ctx context.Context, t *table, after row, batches chan<- *batch) error {
	b := &batch{}
	send := func() error {
		select {
		case batches <- b:
			b = &batch{}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := c.from.each(ctx, t, after, func(r row) error {
		b.add(r)
		if b.full() {
			return send()
		}
		return nil
	})
	if err == nil && b.rows > 0 {
		err = send()
	}
	return err
}

// reporter returns a function that counts rows and reports the progress of a table now and then, and at once.
func reporter(progress func(Progress), p Progress) func(rows int64) {
	if progress == nil {
		return func(int64) {}
	}
	progress(p)
	reported := p.Rows
	return func(rows int64) {
		p.Rows += rows
		if p.Rows-reported >= progressRows || p.Rows == p.Of {
			reported = p.Rows
			progress(p)
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

func (c *copier) compare(ctx context.Context, t *table) (report TableReport, err error) {
	total, err := c.from.count(ctx, t)
	if err != nil {
		return report, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		TableReport
		err error
	}
	copied := make(chan result, 1)
	go func() {
		r, err := digestTable(ctx, c.to, t, func(int64) {})
		copied <- result{r, err}
	}()
	report, err = digestTable(ctx, c.from, t, reporter(c.progress, Progress{Step: Comparing, Table: t.name, Of: total}))
	if err != nil {
		cancel()
	}
	other := <-copied
	switch {
	case err != nil:
		return report, err
	case other.err != nil:
		return report, other.err
	case report != other.TableReport:
		return report, differs(report, other.TableReport)
	}
	return report, nil
}

// digestTable reads a whole table.
func digestTable(ctx context.Context, from rowReader, t *table, report func(int64)) (TableReport, error) {
	hash := sha256.New()
	var text []byte
	rows := int64(0)
	err := from.each(ctx, t, nil, func(r row) error {
		rows++
		report(1)
		text = appendRow(text[:0], t, r)
		hash.Write(text)
		return nil
	})
	return TableReport{Name: t.name, Rows: rows, Digest: hex.EncodeToString(hash.Sum(nil))}, err
}

// appendRow appends the form of a row that is digested. No two rows have the same form.
func appendRow(b []byte, t *table, r row) []byte {
	for i, v := range r {
		switch {
		case v.null:
			b = append(b, 0)
		case t.columns[i].class <= booleans:
			b = binary.BigEndian.AppendUint64(append(b, 1), uint64(v.n))
		default:
			b = binary.BigEndian.AppendUint64(append(b, 2), uint64(len(v.b)))
			b = append(b, v.b...)
		}
	}
	return b
}

// differs describes the first difference between two tables.
func differs(a, b TableReport) error {
	if a.Rows != b.Rows {
		return fmt.Errorf("%s has %d rows in the source and %d in the target: %w", a.Name, a.Rows, b.Rows, ErrDiffers)
	}
	return fmt.Errorf("%s has the digest %.16s in the source and %.16s in the target: %w", a.Name, a.Digest, b.Digest, ErrDiffers)
}
