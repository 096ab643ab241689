package screening

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"kontor/modules/duty/screening/lists"
	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/store"
)

// folder is what this node has seen of the folder with lists.
type folder struct {
	mutex   sync.Mutex
	files   map[string]seenFile // by name
	problem string              // of the folder itself, as it was logged last
}

// seenFile is a file, or a folder with the files of OFAC, as it was seen last.
type seenFile struct {
	state   string
	done    bool   // it was read, or cannot be read
	problem string // as it was logged last, so that an error that stays is logged once
}

// Follow loads the files of the folder that are new or have changed. A file is loaded when it was the same twice, so that one which is
// still being copied is not. A file that was removed does not drop its list.
func (s *Service) Follow(ctx context.Context) error {
	if s.Dir == "" {
		return nil
	}
	s.seen.mutex.Lock()
	defer s.seen.mutex.Unlock()
	files, err := os.ReadDir(s.Dir)
	s.seen.problem = s.report(s.seen.problem, "cannot read screening.dir", s.Dir, err)
	if err != nil {
		return nil
	}
	before := s.seen.files
	s.seen.files = make(map[string]seenFile, len(files))
	for _, f := range files {
		if !hidden(f.Name()) && ctx.Err() == nil {
			s.seen.files[f.Name()] = s.look(ctx, f.Name(), before[f.Name()])
		}
	}
	return nil
}

// look loads a file that is the same as it was before, unless that was done, and returns what it has seen.
func (s *Service) look(ctx context.Context, name string, was seenFile) seenFile {
	state, err := stateOf(filepath.Join(s.Dir, name))
	if err != nil {
		return seenFile{problem: s.report(was.problem, "cannot read a file of screening.dir", name, err)}
	}
	if state != was.state {
		return seenFile{state: state}
	}
	if !was.done {
		was.done, err = s.follow(ctx, name)
		if ctx.Err() == nil {
			was.problem = s.report(was.problem, "cannot load a list of screening.dir; the former list stays in force", name, err)
		}
	}
	return was
}

// report logs a problem unless it is the one that was logged last, and returns its text; empty without an error.
func (s *Service) report(last, message, file string, err error) string {
	if err == nil {
		return ""
	}
	if err.Error() != last {
		s.Log.Error(message, "file", file, "cause", err)
	}
	return err.Error()
}

// hidden reports whether a file is none that an operator wants to be loaded: copies write to such names first.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part")
}

// stateOf returns a text that changes with a file, or with a file of a folder.
func stateOf(path string) (string, error) {
	var b strings.Builder
	err := eachFile(path, func(name string, info fs.FileInfo) error {
		fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return b.String(), err
}

// eachFile calls f with a file, or with the files directly in a folder, in the order of their names.
func eachFile(path string, f func(name string, info fs.FileInfo) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f("", info)
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, one := range files {
		if hidden(one.Name()) {
			continue
		}
		info, err := os.Stat(filepath.Join(path, one.Name()))
		if err == nil && info.Mode().IsRegular() {
			err = f(one.Name(), info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow loads a file of the folder under its name without the extension, unless it is in force. done is false if it should be tried
// again.
func (s *Service) follow(ctx context.Context, name string) (done bool, err error) {
	f, err := FileAt(filepath.Join(s.Dir, name), strings.TrimSuffix(name, filepath.Ext(name)))
	var current List
	if err == nil {
		current, err = scan(s.db.QueryRow(ctx, selectByName, types.Fold(f.Name)))
	}
	switch {
	case err == nil && current.SHA256 == f.SHA256:
		return true, nil
	case err == nil || errors.Is(err, store.ErrNotFound):
		current, err = s.Load(ctx, f)
	}
	if err != nil {
		invalid, ok := errors.AsType[*apierr.Error](err)
		return ok && invalid.Kind == apierr.InvalidInput, err
	}
	s.Log.Info("loaded a list", "list", current.Name, "entries", current.Entries, "added", current.Added, "changed", current.Changed, "removed", current.Removed)
	return true, nil
}

// FileAt returns the list in a file, or in a folder with the files of OFAC. It returns apierr.InvalidInput for a wrong name.
func FileAt(path, name string) (File, error) {
	var v apierr.Fields
	f := File{Name: ListName(&v, name), Read: func(add func(lists.Entry) error) (lists.Info, error) { return lists.ReadFile(path, add) }}
	if err := v.Err(); err != nil {
		return File{}, err
	}
	whole := sha256.New()
	err := eachFile(path, func(name string, info fs.FileInfo) error {
		f.Size += info.Size()
		if name == "" {
			return hashFile(whole, path)
		}
		one := sha256.New()
		err := hashFile(one, filepath.Join(path, name))
		fmt.Fprintf(whole, "%s %x\n", name, one.Sum(nil))
		return err
	})
	f.SHA256 = hex.EncodeToString(whole.Sum(nil))
	return f, err
}

func hashFile(to io.Writer, path string) error {
	f, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
