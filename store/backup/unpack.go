package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite"
)

// unpack writes the database and the key of a backup and of the increments after it. It compares the pages with their sums.
func (r *restore) unpack(ctx context.Context, parts []Part) (m manifest, err error) {
	path := r.File(datadir.RestoringDatabase)
	database, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if len(parts) == 0 {
		return m, errNoBackup
	}
	before := ""
	for i, part := range parts {
		if m, err = r.apply(ctx, part, before, database, i == len(parts)-1); err != nil {
			return m, &PartError{part.Name, err}
		}
		before = m.ID
	}
	if err := database.Sync(); err != nil {
		return m, err
	}
	return m, r.addChecksums(ctx)
}

// apply writes the pages of one backup over those of the backup before.
func (r *restore) apply(ctx context.Context, part Part, before string, database *os.File, last bool) (manifest, error) {
	in, err := part.Open(ctx)
	if err != nil {
		return manifest{}, fmt.Errorf("cannot be read: %w", datadir.Cause(err))
	}
	defer in.Close()
	var m manifest
	to := content{
		manifest: func(found manifest) error {
			m = found
			if part.Accept != nil {
				if err := part.Accept(m.header()); err != nil {
					return err
				}
			}
			return follows(m, before)
		},
		key: func(text []byte) error { return datadir.Write(r.File(datadir.RestoringKey), text) },
		page: func(number int64, page []byte) error {
			_, err := database.WriteAt(page, (number-1)*m.PageSize)
			return errors.Join(err, ctx.Err())
		},
		sums: func(in io.Reader, given bool) error {
			if err := database.Truncate(m.Bytes()); err != nil || !last || !given {
				return err
			}
			return compareSums(ctx, database, m, in)
		},
	}
	return read(in, to)
}

// follows reports whether a backup continues the one with an id; an empty id stands for the beginning.
func follows(m manifest, before string) error {
	switch {
	case m.Base == before:
		return nil
	case before == "":
		return fmt.Errorf("%w: this backup holds only what has changed since another one; name that one first", ErrOrder)
	case m.Base == "":
		return fmt.Errorf("%w: this backup is complete by itself; name it alone, or first", ErrOrder)
	}
	return fmt.Errorf("%w: this backup does not continue the one before it", ErrOrder)
}

// compareSums compares the pages of a database with the sums of a backup.
func compareSums(ctx context.Context, database *os.File, m manifest, in io.Reader) error {
	pages := io.NewSectionReader(database, 0, m.Bytes())
	page := make([]byte, m.PageSize)
	var want sum
	for n := int64(1); n <= m.Pages && ctx.Err() == nil; n++ {
		if _, err := io.ReadFull(pages, page); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, want[:]); err != nil {
			return err
		}
		if sumOf(page) != want {
			return fmt.Errorf("%w: page %d does not have its sum", engine.ErrCorrupt, n)
		}
	}
	return ctx.Err()
}

// addChecksums gives checksums to the pages of a database from before there were any.
func (r *restore) addChecksums(ctx context.Context) error {
	path := r.File(datadir.RestoringDatabase)
	f, err := sqlite.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if has, err := f.HasChecksums(ctx); err != nil || has {
		return err
	}
	copied := r.File(datadir.RestoringDatabase + copySuffix)
	if err := r.Remove(datadir.RestoringDatabase + copySuffix); err != nil {
		return err
	}
	if err := os.WriteFile(copied, nil, datadir.FileMode); err != nil {
		return err
	}
	if err := f.CopyTo(ctx, copied); err != nil {
		return err
	}
	if err := datadir.SyncClosed(copied); err != nil {
		return err
	}
	return os.Rename(copied, path)
}

const copySuffix = ".copy"
