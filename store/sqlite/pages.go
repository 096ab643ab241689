package sqlite

import (
	"context"
	"fmt"
	"iter"

	"kontor/store/query"
)

const selectPage = `SELECT data FROM sqlite_dbpage WHERE pgno = $1`

// Extent is the size of a database.
type Extent struct {
	PageSize int64 `json:"page_size"` // bytes of a page
	Pages    int64 `json:"pages"`     // that are numbered from 1
}

// Bytes returns the size of the database file.
func (e Extent) Bytes() int64 { return e.PageSize * e.Pages }

// All returns the numbers of all pages.
func (e Extent) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for n := int64(1); n <= e.Pages && yield(n); n++ {
		}
	}
}

// pageReader reads the pages of one state of a database, as its file would hold them after a checkpoint.
type pageReader struct{ source }

func (r pageReader) extent(ctx context.Context) (e Extent, err error) {
	if err = query.NewRow(ctx, r.source, "PRAGMA page_size", nil).Scan(&e.PageSize); err == nil {
		err = query.NewRow(ctx, r.source, "PRAGMA page_count", nil).Scan(&e.Pages)
	}
	return e, err
}

// each calls fn for each of the pages. The memory of a page belongs to fn until it returns.
func (r pageReader) each(ctx context.Context, numbers iter.Seq[int64], fn func(number int64, page []byte) error) error {
	for n := range numbers {
		var page []byte
		if err := query.NewRow(ctx, r.source, selectPage, []any{n}).Scan(&page); err != nil {
			return fmt.Errorf("read page %d: %w", n, err)
		}
		r.source.conn.AsWritten(page, n)
		if err := fn(n, page); err != nil {
			return err
		}
	}
	return nil
}

// Extent returns the size of the state that Begin has chosen.
func (f *File) Extent(ctx context.Context) (Extent, error) { return pageReader{f.source}.extent(ctx) }

// EachPage calls fn for each of the pages of the state that Begin has chosen.
func (f *File) EachPage(ctx context.Context, numbers iter.Seq[int64], fn func(number int64, page []byte) error) error {
	return pageReader{f.source}.each(ctx, numbers, fn)
}

// HasChecksums reports whether the pages of the file have checksums. Those of databases of early versions have none.
func (f *File) HasChecksums(ctx context.Context) (bool, error) {
	if err := query.NewRow(ctx, f, "PRAGMA page_count", nil).Scan(new(int64)); err != nil { // the file layer reads the first page
		return false, explain(f.path, err)
	}
	return f.conn.HasChecksums(), nil
}
