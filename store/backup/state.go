package backup

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite"
)

// pageSource reads the pages of one state of a database.
type pageSource interface {
	EachPage(ctx context.Context, numbers iter.Seq[int64], fn func(number int64, page []byte) error) error
}

// state is one state of a database on its way into a backup. Without a base in the manifest all pages are written.
type state struct {
	pages    pageSource
	manifest manifest
	key      []byte // nil: left out
	changed  []int64
	sums     []sum // of all pages; nil for a recording whose other pages are not read
	progress func(done, total int64)
}

// WriteRecording writes a recording of a database that is being served: all of it, or, after the backup with the id before, only
// the pages that have changed. It returns the id of the new backup.
func WriteRecording(ctx context.Context, taken *sqlite.Recording, before string, origin Origin, out io.Writer) (id string, r Result, err error) {
	w, err := newWriter(out)
	if err != nil {
		return "", r, err
	}
	m := manifest{Format: format, ID: rand.Text(), Base: before, CreatedAt: taken.At, Schema: taken.Schema, Extent: taken.Extent, Origin: &origin}
	s := state{pages: taken, manifest: m}
	for _, n := range taken.Changed {
		if n <= taken.Pages { // the database may have become smaller
			s.changed = append(s.changed, n)
		}
	}
	r, err = s.write(ctx, w)
	return m.ID, r, err
}

// base is what an increment needs to know about the backup that it continues.
type base struct {
	id   string
	sums []sum
}

// readBase reads the sums of a backup. An empty name returns nil.
func readBase(name string) (*base, error) {
	if name == "" {
		return nil, nil
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, datadir.Cause(err))
	}
	defer in.Close()
	b := &base{}
	m, err := read(in, content{sums: func(in io.Reader, _ bool) error {
		for {
			var s sum
			if _, err := io.ReadFull(in, s[:]); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			b.sums = append(b.sums, s)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b.id = m.ID
	return b, nil
}

// compare finds the pages that have changed since a base.
func (s *state) compare(ctx context.Context, b *base) error {
	s.manifest.Base = b.id
	return s.pages.EachPage(ctx, s.manifest.All(), func(n int64, page []byte) error {
		s.sums = append(s.sums, sumOf(page))
		if n > int64(len(b.sums)) || b.sums[n-1] != s.sums[n-1] {
			s.changed = append(s.changed, n)
		}
		s.report(n)
		return nil
	})
}

// write writes the entries of the backup.
func (s *state) write(ctx context.Context, w *writer) (Result, error) {
	m := &s.manifest
	result := Result{Database: m.Bytes(), Pages: m.Pages, Changed: m.Pages}
	described, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Result{}, err
	}
	if err := w.put(manifestName, described, m.CreatedAt); err != nil {
		return Result{}, err
	}
	if s.key != nil {
		if err := w.put(datadir.Key, s.key, m.CreatedAt); err != nil {
			return Result{}, err
		}
	}
	if m.Base == "" {
		err = s.writeAll(ctx, w)
	} else {
		result.Changed = int64(len(s.changed))
		err = s.writeChanged(ctx, w)
	}
	if err != nil {
		return Result{}, err
	}
	if err := w.begin(sumsName, int64(len(s.sums))*sumBytes, m.CreatedAt); err != nil {
		return Result{}, err
	}
	for _, one := range s.sums {
		if _, err := w.archive.Write(one[:]); err != nil {
			return Result{}, err
		}
	}
	err = w.close()
	result.Compressed = w.counted.bytes
	return result, err
}

func (s *state) writeAll(ctx context.Context, w *writer) error {
	if err := w.begin(datadir.Database, s.manifest.Bytes(), s.manifest.CreatedAt); err != nil {
		return err
	}
	return s.pages.EachPage(ctx, s.manifest.All(), func(n int64, page []byte) error {
		s.sums = append(s.sums, sumOf(page))
		_, err := w.archive.Write(page)
		s.report(n)
		return err
	})
}

func (s *state) writeChanged(ctx context.Context, w *writer) error {
	size := int64(len(s.changed)) * (numberBytes + s.manifest.PageSize)
	if err := w.begin(pagesName, size, s.manifest.CreatedAt); err != nil {
		return err
	}
	return s.pages.EachPage(ctx, slices.Values(s.changed), func(n int64, page []byte) error {
		if _, err := w.archive.Write(binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
			return err
		}
		_, err := w.archive.Write(page)
		return err
	})
}

// reportEvery is the number of pages between two reports of the progress.
const reportEvery = 4096

func (s *state) report(pages int64) {
	if s.progress != nil && (pages%reportEvery == 0 || pages == s.manifest.Pages) {
		s.progress(pages*s.manifest.PageSize, s.manifest.Bytes())
	}
}

// readPages passes on the pages of an entry: numbered ones of an increment, or all in their order.
func readPages(in io.Reader, m manifest, to func(number int64, page []byte) error) error {
	if to == nil {
		return nil
	}
	page, before := make([]byte, m.PageSize), make([]byte, numberBytes)
	for n := int64(1); ; n++ {
		number := n
		if m.Base != "" {
			if _, err := io.ReadFull(in, before); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			number = int64(binary.BigEndian.Uint64(before))
		}
		if _, err := io.ReadFull(in, page); m.Base == "" && errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if number < 1 || number > m.Pages {
			return fmt.Errorf("%w: page %d of %d", engine.ErrCorrupt, number, m.Pages)
		}
		if err := to(number, page); err != nil {
			return err
		}
	}
}
