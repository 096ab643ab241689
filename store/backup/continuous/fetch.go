package continuous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"kontor/store/backup"
	"kontor/store/engine"
	"kontor/store/sealing"
)

const (
	parallelFetches = 16
	// maxFetched is the size from which a part is read when its turn comes, and not before into memory.
	maxFetched = 4 << 20
)

// fetched is a small part in memory.
type fetched struct {
	data []byte
	err  error
}

// fetch returns the parts for a restore. Small ones are read ahead, because there may be thousands.
func fetch(ctx context.Context, t Target, key Key, wanted []part) []backup.Part {
	results := make([]chan fetched, len(wanted))
	for i := range results {
		results[i] = make(chan fetched, 1)
	}
	slots := make(chan struct{}, parallelFetches)
	go func() {
		for i, p := range wanted {
			if p.size > maxFetched {
				continue
			}
			select {
			case slots <- struct{}{}: // freed when the part is used
			case <-ctx.Done():
				return
			}
			go func() {
				data, err := readAll(ctx, t, p)
				results[i] <- fetched{data, err}
			}()
		}
	}()
	parts := make([]backup.Part, len(wanted))
	for i, p := range wanted {
		parts[i] = backup.Part{Name: p.name(), Accept: p.accept, Open: func(ctx context.Context) (io.ReadCloser, error) {
			if p.size > maxFetched {
				in, err := t.Get(ctx, p.name())
				if err != nil {
					return nil, err
				}
				return opened(key, in)
			}
			select {
			case f := <-results[i]:
				<-slots
				if f.err != nil {
					return nil, f.err
				}
				return opened(key, io.NopCloser(bytes.NewReader(f.data)))
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
	}
	return parts
}

func readAll(ctx context.Context, t Target, p part) ([]byte, error) {
	in, err := t.Get(ctx, p.name())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, maxFetched+1))
}

// accept returns an error if a part is not what its name says: it was swapped with another one, or renamed.
func (p part) accept(h backup.Header) error {
	if p.isOld() {
		return nil // it says nothing about its place
	}
	o := h.Origin
	if o == nil || h.Whole != p.whole || h.CreatedAt != p.at || o.Incarnation != p.line || o.Chain != p.chain || o.Number != p.number ||
		o.Commits != p.commits || o.Elapsed.Milliseconds() != p.elapsed.Milliseconds() {
		return fmt.Errorf("%w: it holds another part than its name says", engine.ErrCorrupt)
	}
	return nil
}

// opened returns a reader of the plain content, which closes the sealed one. An error of the content is sealing.ErrWrongKey or
// engine.ErrCorrupt; errors of the target are returned as they are.
func opened(key Key, sealed io.ReadCloser) (io.ReadCloser, error) {
	source := &source{in: sealed}
	plain, err := key.open(source)
	if err != nil {
		if source.err != nil {
			err = source.err
		}
		return nil, errors.Join(err, sealed.Close())
	}
	return &unsealed{plain, source}, nil
}

// source remembers the error of the target.
type source struct {
	in  io.ReadCloser
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

type unsealed struct {
	plain  io.Reader
	source *source
}

func (u *unsealed) Read(b []byte) (int, error) {
	n, err := u.plain.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped end is an early one
		if err = fmt.Errorf("%w: %w", engine.ErrCorrupt, err); u.source.err != nil {
			err = u.source.err
		}
	}
	return n, err
}

func (u *unsealed) Close() error { return u.source.in.Close() }

// isDamaged reports whether an error is about the content of a part, and not about the target.
func isDamaged(err error) bool {
	return errors.Is(err, engine.ErrCorrupt) || errors.Is(err, sealing.ErrWrongKey) || errors.Is(err, backup.ErrOrder)
}
