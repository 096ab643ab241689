package continuous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kontor/store/datadir"
)

// directory is a target in the file system. Another disk, or a network share, survives the loss of the machine.
type directory string

const temporary = ".new" // follows the name of an object that is not complete

// Put writes the object under another name and renames it.
func (d directory) Put(_ context.Context, name string, _ int64, in io.ReadSeeker) error {
	path := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), datadir.DirMode); err != nil {
		return err
	}
	if err := write(path+temporary, in); err != nil {
		return errors.Join(err, os.Remove(path+temporary))
	}
	if err := os.Rename(path+temporary, path); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(path), string(d)} {
		if err := datadir.Sync(dir); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, in io.Reader) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}

// List lists the files of all chains.
func (d directory) List(ctx context.Context) (objects []Object, err error) {
	err = filepath.WalkDir(string(d), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // deleted in the meantime, or nothing was shipped yet
			}
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		name, err := filepath.Rel(string(d), path)
		objects = append(objects, Object{Name: filepath.ToSlash(name), Size: info.Size()})
		return err
	})
	return objects, err
}

// Get opens the file of an object.
func (d directory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(d), filepath.FromSlash(name)))
}

// Delete deletes the file of an object, and the directory of its chain when nothing is left in it.
func (d directory) Delete(_ context.Context, name string) error {
	path := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(path)) // fails while other parts are there
	return nil
}

// String names the directory.
func (d directory) String() string { return fmt.Sprintf("directory %s", string(d)) }
