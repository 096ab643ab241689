package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kontor/modules/app"
	"kontor/server/settings"
	"kontor/store/datadir"
	"kontor/store/erasures"
	"kontor/store/sqlite"
)

// sandboxServer serves a sandbox in rounds. A reset ends a round: the database is closed, its files are replaced by the kept ones, and
// the next round builds the modules again on the listener of the first. So nothing in memory is of the former data.
type sandboxServer struct {
	kept keptState
	main *net.TCPListener

	mu    sync.Mutex
	end   context.CancelFunc // ends the round
	asked *resetRequest      // nil: none
}

// resetRequest asks for the kept state, or to keep the present one.
type resetRequest struct {
	keep bool
	done chan error
}

// closeForReset is how long the modules may take to write what they hold in memory before the files are copied.
const closeForReset = 30 * time.Second

// serveSandbox serves the modules. first makes an empty database the beginning of the sandbox; each runs once, before it is served.
func serveSandbox(ctx context.Context, p Process, r *settings.Result, o openOptions, open *listeners, first, each func(*app.Modules) error) error {
	main, ok := open.main.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("a sandbox cannot listen on %s", open.main.Addr())
	}
	s := &sandboxServer{kept: keptState{r.Settings.Data.Dir}, main: main}
	defer main.Close() //nolint:errcheck // it may be closed already
	o.closing = func() time.Duration {
		if ctx.Err() == nil {
			return closeForReset
		}
		return closeTimeout(r.Settings.Server.Shutdown)
	}
	if err := s.kept.finish(); err != nil {
		return err
	}
	if !s.kept.exists() {
		if err := withModules(ctx, r, o, first); err != nil {
			return err
		}
		if err := s.kept.keep(); err != nil {
			return err
		}
	}
	for {
		err := s.round(ctx, p, r, o, open, each)
		request := s.asked
		if request == nil || ctx.Err() != nil {
			return err
		}
		each, s.asked = func(*app.Modules) error { return nil }, nil
		if err == nil {
			err = s.change(request)
		}
		if err == nil {
			err = open.again(ctx)
		}
		if err != nil {
			request.done <- err
			return fmt.Errorf("reset the sandbox: %w", err)
		}
		open.ready = func() {
			open.ready = func() {}
			close(request.done)
		}
	}
}

// change makes the files of the closed database those of the kept state, or the other way round.
func (s *sandboxServer) change(request *resetRequest) error {
	if request.keep {
		return s.kept.keep()
	}
	return s.kept.restore()
}

// round serves until the context ends or a reset is asked for.
func (s *sandboxServer) round(ctx context.Context, p Process, r *settings.Result, o openOptions, open *listeners, each func(*app.Modules) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.end = cancel
	s.mu.Unlock()
	shared := &sharedListener{TCPListener: s.main}
	if err := s.main.SetDeadline(time.Time{}); err != nil {
		return err
	}
	defer shared.Close() //nolint:errcheck // it may be closed already
	open.main = shared
	o.sandbox.Restart = s.restart
	o.sandbox.Rounds++
	return withModules(ctx, r, o, func(m *app.Modules) error {
		if err := each(m); err != nil {
			return err
		}
		return run(ctx, p, m, r, o, open)
	})
}

// restart ends the round, see [playground.Restart].
func (s *sandboxServer) restart(keep bool) <-chan error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = &resetRequest{keep: keep, done: make(chan error, 1)}
		s.end()
	}
	return s.asked.done
}

// sharedListener is a listener that may be closed while connections wait for the next one on the same address.
type sharedListener struct {
	*net.TCPListener
	mu     sync.RWMutex // held for reading by Accept
	closed bool
}

// Accept returns the next connection, or net.ErrClosed.
func (l *sharedListener) Accept() (net.Conn, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	c, err := l.TCPListener.Accept()
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed
	}
	return c, err
}

// Close makes Accept return, and waits until it has. The address stays open.
func (l *sharedListener) Close() error {
	err := l.SetDeadline(time.Unix(1, 0))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return err
}

// keptState is what a reset goes back to: copies of the files of the closed database, in a directory beside them.
type keptState struct{ dir string }

const (
	keptDir    = "sandbox"        // below the data directory
	unfinished = "sandbox.change" // says that the files are being replaced
)

// keptFiles are the files of a closed database. Those that are missing in the kept state are deleted by a reset.
func keptFiles() []string {
	return []string{datadir.Database, sqlite.MarkName, erasures.Name, datadir.Key}
}

func (k keptState) path(name string) string { return filepath.Join(k.dir, name) }

func (k keptState) exists() bool {
	_, err := os.Stat(k.path(keptDir))
	return err == nil
}

// keep makes the present state the kept one.
func (k keptState) keep() error {
	next := k.path(keptDir + ".new")
	if err := errors.Join(os.RemoveAll(next), os.Mkdir(next, datadir.DirMode)); err != nil {
		return fmt.Errorf("keep the state of the sandbox: %w", err)
	}
	for _, name := range keptFiles() {
		if err := copyFile(k.path(name), filepath.Join(next, name)); err != nil {
			return fmt.Errorf("keep the state of the sandbox: %w", err)
		}
	}
	if err := errors.Join(os.RemoveAll(k.path(keptDir)), os.Rename(next, k.path(keptDir))); err != nil {
		return fmt.Errorf("keep the state of the sandbox: %w", err)
	}
	return nil
}

// restore goes back to the kept state. A start continues one that was interrupted.
func (k keptState) restore() error {
	if err := os.WriteFile(k.path(unfinished), nil, datadir.FileMode); err != nil {
		return fmt.Errorf("go back to the kept state: %w", err)
	}
	return k.finish()
}

// finish does what is left of a restore.
func (k keptState) finish() error {
	if _, err := os.Stat(k.path(unfinished)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range []string{datadir.Database + "-wal", datadir.Database + "-shm"} {
		if err := os.Remove(k.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("go back to the kept state: %w", err)
		}
	}
	for _, name := range keptFiles() {
		if err := copyFile(filepath.Join(k.path(keptDir), name), k.path(name)); err != nil {
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
