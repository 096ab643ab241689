package continuous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"kontor/store/backup"
	"kontor/store/clock"
	"kontor/store/inspect"
	"kontor/store/sealing"
)

// ErrNoState says that a target holds no state of the wanted time.
var ErrNoState = errors.New("there is no backup of that time")

// Period is a time of which a target holds every state that was shipped.
type Period struct {
	From, To clock.Time
	Parts    int
	Bytes    int64
}

// Periods returns the periods of a target, the oldest first.
func Periods(ctx context.Context, t Target) ([]Period, error) {
	all, _, err := chains(ctx, t)
	if err != nil {
		return nil, err
	}
	periods := make([]Period, len(all))
	for i, c := range all {
		periods[i] = Period{From: c.begin(), To: c.end(), Parts: len(c)}
		for _, p := range c {
			periods[i].Bytes += p.size
		}
	}
	return periods, nil
}

// Restore restores the latest state that is not later than a time, or the latest of all for 0, as backup.Restore does. It returns
// the time of the state. The master key of the source must be the one of that time. It returns ErrNoState when nothing is old
// enough, and sealing.ErrWrongKey for another key.
func Restore(ctx context.Context, t Target, at clock.Time, to inspect.Source) (state clock.Time, r inspect.Report, err error) {
	key, err := keyOf(to.SecretKey)
	if err != nil {
		return 0, r, err
	}
	all, _, err := chains(ctx, t)
	if err != nil {
		return 0, r, err
	}
	wanted := choose(all, at)
	if len(wanted) == 0 {
		return 0, r, notThere(t, all, at)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err = backup.RestoreParts(ctx, fetch(ctx, t, key, wanted), to)
	return wanted.end(), r, err
}

func keyOf(text string) (Key, error) {
	if text == "" {
		return "", fmt.Errorf("%w: the backup is encrypted with it", sealing.ErrNoKey)
	}
	master, err := sealing.ParseMasterKey(text)
	if err != nil {
		return "", err
	}
	keys, err := sealing.New(master)
	if err != nil {
		return "", err
	}
	return KeyOf(keys.BackupKey()), nil
}

// choose returns the parts up to a time of the latest chain that had begun by then.
func choose(all []chain, at clock.Time) (wanted chain) {
	for _, c := range all {
		n := 0
		for n < len(c) && (at == 0 || c[n].at <= at) {
			n++
		}
		if n > 0 {
			wanted = c[:n]
		}
	}
	return wanted
}

func notThere(t Target, all []chain, at clock.Time) error {
	if len(all) == 0 {
		return fmt.Errorf("%s holds no backup: %w", t, ErrNoState)
	}
	return fmt.Errorf("%s begins at %s, after %s: %w", t, all[0].begin().Std().UTC().Format(time.RFC3339), at.Std().UTC().Format(time.RFC3339), ErrNoState)
}

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
func fetch(ctx context.Context, t Target, key Key, wanted chain) []backup.Part {
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
		parts[i] = backup.Part{Name: p.name(), Open: func(ctx context.Context) (io.ReadCloser, error) {
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

// opened returns a reader of the plain content, which closes the sealed one.
func opened(key Key, sealed io.ReadCloser) (io.ReadCloser, error) {
	plain, err := key.open(sealed)
	if err != nil {
		return nil, errors.Join(err, sealed.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{plain, sealed}, nil
}
