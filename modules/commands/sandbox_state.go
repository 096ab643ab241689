package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kontor/server/settings"
	"kontor/store/datadir"
	"kontor/store/erasures"
	"kontor/store/inspect"
	"kontor/store/sqlite"
)

// keptState is what a reset goes back to: copies of the files of the closed database, in a directory beside them.
type keptState struct{ dir string }

const (
	firstDir   = "sandbox"        // below the data directory: the state after the first start
	laterDir   = "sandbox.kept"   // a state that was kept later, such as that after a seed file
	unfinished = "sandbox.change" // says that the files are being replaced
)

// filesBeside are the files beside the database. Those that are missing in the kept state are deleted by a reset.
func filesBeside() []string { return []string{sqlite.MarkName, erasures.Name, datadir.Key} }

func (k keptState) path(name string) string { return filepath.Join(k.dir, name) }

func (k keptState) exists() bool { return k.has(firstDir) }

func (k keptState) has(name string) bool {
	return datadir.At(k.dir).Has(name)
}

// requireNone rejects kept states in a directory that is not a sandbox, such as those that an earlier version has left in production
// data.
func (k keptState) requireNone(ctx context.Context) error {
	for _, name := range []string{firstDir, laterDir} {
		for _, name := range []string{name, name + ".new", name + ".old"} {
			if !k.has(name) {
				continue
			}
			if purpose, err := inspect.PurposeOf(ctx, inspect.Source{Dir: k.dir}); err == nil && purpose == inspect.Sandbox {
				return nil
			}
			return fmt.Errorf("%s is what a sandbox keeps: copies of the database and of the master key, with people who have been erased since. "+
				"Production data must not have it; delete it, or move it elsewhere if it is something else", k.path(name))
		}
	}
	return nil
}

// requireNoSandbox rejects a directory of production data with the kept states of a sandbox.
func requireNoSandbox(ctx context.Context, r *settings.Result) error {
	if isShared(r) {
		return nil
	}
	return keptState{r.Settings.Data.Dir}.requireNone(ctx)
}

// keepFirst makes the state of the closed database the one after the first start.
func (k keptState) keepFirst() error {
	return k.replace(firstDir, func(next string) error {
		return copyFile(k.path(datadir.Database), filepath.Join(next, datadir.Database))
	})
}

// keep makes the present state the one that resets go back to, while the database is served. The mark is copied before the database: a
// start accepts a database that is ahead of its mark.
func (k keptState) keep(ctx context.Context) error {
	return k.replace(laterDir, func(next string) error {
		return copyDatabase(ctx, k.path(datadir.Database), filepath.Join(next, datadir.Database))
	})
}

// replace makes a directory a copy of the files beside the database and of what copyData writes.
func (k keptState) replace(name string, copyData func(next string) error) error {
	next := k.path(name + ".new")
	err := errors.Join(os.RemoveAll(next), os.Mkdir(next, datadir.DirMode))
	for _, file := range filesBeside() {
		if err == nil {
			err = copyFile(k.path(file), filepath.Join(next, file))
		}
	}
	if err == nil {
		err = copyData(next)
	}
	if err == nil {
		err = k.forget(name)
	}
	if err == nil {
		err = os.Rename(next, k.path(name))
	}
	if err != nil {
		return fmt.Errorf("keep the state of the sandbox: %w", err)
	}
	return nil
}

// forget removes a kept state, if there is one. An interrupted removal leaves no part of it under its name.
func (k keptState) forget(name string) error {
	former := k.path(name + ".old")
	if err := os.RemoveAll(former); err != nil || !k.has(name) {
		return err
	}
	if err := os.Rename(k.path(name), former); err != nil {
		return err
	}
	return os.RemoveAll(former)
}

// restore goes back to the kept state, or to that after the first start. A start continues one that was interrupted.
func (k keptState) restore(ctx context.Context, first bool) error {
	if first {
		if err := k.forget(laterDir); err != nil {
			return fmt.Errorf("go back to the state after the first start: %w", err)
		}
	}
	if err := os.WriteFile(k.path(unfinished), nil, datadir.FileMode); err != nil {
		return fmt.Errorf("go back to the kept state: %w", err)
	}
	return k.finish(ctx)
}

// finish does what is left of a restore.
func (k keptState) finish(ctx context.Context) error {
	if !k.has(unfinished) {
		return nil
	}
	if purpose, err := inspect.PurposeOf(ctx, inspect.Source{Dir: k.dir}); err != nil || purpose != inspect.Sandbox {
		return err // opening the database says that it is no sandbox
	}
	from := firstDir
	if k.has(laterDir) {
		from = laterDir
	}
	for _, name := range []string{datadir.Database + "-wal", datadir.Database + "-shm"} {
		if err := os.Remove(k.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("go back to the kept state: %w", err)
		}
	}
	for _, name := range append(filesBeside(), datadir.Database) {
		if err := copyFile(filepath.Join(k.path(from), name), k.path(name)); err != nil {
			return fmt.Errorf("go back to the kept state: %w", err)
		}
	}
	return os.Remove(k.path(unfinished))
}

// copyFile makes one file a copy of another, which may be missing.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.Remove(to); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	if err != nil {
		return err
	}
	defer source.Close()
	temporary := to + ".tmp"
	target, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, datadir.FileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Sync(), target.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, to)
}

// copyDatabase writes a state of a database that is being served to a new file.
func copyDatabase(ctx context.Context, from, to string) (err error) {
	source, err := sqlite.OpenFile(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := source.Begin(ctx); err != nil {
		return err
	}
	extent, err := source.Extent(ctx)
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, datadir.FileMode)
	if err != nil {
		return err
	}
	pages := bufio.NewWriterSize(target, 1<<20)
	err = source.EachPage(ctx, extent.All(), func(_ int64, page []byte) error {
		_, err := pages.Write(page)
		return err
	})
	return errors.Join(err, pages.Flush(), target.Sync(), target.Close())
}
