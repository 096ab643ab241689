package backup

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite"
)

// state is one state of a database on its way into a backup.
type state struct {
	file     *sqlite.File
	manifest manifest
	key      []byte // nil: left out
	base     *base  // nil: all pages are written
	progress func(done, total int64)
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
	m, err := read(in, content{sums: func(in io.Reader) error {
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

// write writes the entries of the backup.
func (s *state) write(ctx context.Context, w *writer) (Result, error) {
	m := &s.manifest
	result := Result{Database: m.Bytes(), Pages: m.Pages, Changed: m.Pages}
	sums := make([]sum, 0, m.Pages)
	var changed []int64
	if s.base != nil {
		m.Base = s.base.id
		err := s.file.EachPage(ctx, m.All(), func(n int64, page []byte) error {
			sums = append(sums, sumOf(page))
			if n > int64(len(s.base.sums)) || s.base.sums[n-1] != sums[n-1] {
				changed = append(changed, n)
			}
			s.report(n)
			return nil
		})
		if err != nil {
			return Result{}, err
		}
		result.Changed = int64(len(changed))
	}
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
	if s.base != nil {
		err = s.writeChanged(ctx, w, changed)
	} else {
		sums, err = s.writeAll(ctx, w, sums)
	}
	if err != nil {
		return Result{}, err
	}
	if err := w.begin(sumsName, m.Pages*sumBytes, m.CreatedAt); err != nil {
		return Result{}, err
	}
	for _, one := range sums {
		if _, err := w.archive.Write(one[:]); err != nil {
			return Result{}, err
		}
	}
	err = w.close()
	result.Compressed = w.counted.bytes
	return result, err
}

func (s *state) writeAll(ctx context.Context, w *writer, sums []sum) ([]sum, error) {
	if err := w.begin(datadir.Database, s.manifest.Bytes(), s.manifest.CreatedAt); err != nil {
		return nil, err
	}
	err := s.file.EachPage(ctx, s.manifest.All(), func(n int64, page []byte) error {
		sums = append(sums, sumOf(page))
		_, err := w.archive.Write(page)
		s.report(n)
		return err
	})
	return sums, err
}

func (s *state) writeChanged(ctx context.Context, w *writer, changed []int64) error {
	size := int64(len(changed)) * (numberBytes + s.manifest.PageSize)
	if err := w.begin(pagesName, size, s.manifest.CreatedAt); err != nil {
		return err
	}
	return s.file.EachPage(ctx, slices.Values(changed), func(n int64, page []byte) error {
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
