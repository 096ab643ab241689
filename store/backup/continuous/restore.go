package continuous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"kontor/store/backup"
	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/inspect"
	"kontor/store/sealing"
)

// Restored says what was restored.
type Restored struct {
	Choice
	backup.Restored
	Notes []string // what else the target holds, and what is missing; a sentence each
}

// Restore restores a state, as backup.Restore does. The master key of the source must be the one of that time. It returns
// ErrNoState when nothing is old enough, sealing.ErrWrongKey for another key, ErrAmbiguous when Wanted.Line must be given, and
// ErrGap when Wanted.AllowGap must be.
func Restore(ctx context.Context, t Target, w Wanted, to inspect.Source) (r Restored, err error) {
	key, err := KeyOfMaster(to.SecretKey)
	if err != nil {
		return r, err
	}
	survey, err := Look(ctx, t, key)
	if err != nil {
		return r, err
	}
	if w.Now == 0 {
		w.Now = clock.Of(clock.System{}.Now())
	}
	for damaged := map[string]bool{}; ; {
		if r.Choice, err = survey.choose(w, damaged); err != nil {
			return r, err
		}
		r.Restored, err = restoreParts(ctx, t, key, r.parts, to)
		bad, ok := errors.AsType[*backup.PartError](err)
		if !ok || !isDamaged(err) {
			break
		}
		unusable := &unusablePart{bad}
		if !w.AllowGap {
			return r, fmt.Errorf("%w; --allow-gap restores the newest complete state before it", unusable)
		}
		damaged[bad.Name] = true
		r.Notes = append(r.Notes, unusable.Error())
	}
	r.Notes = append(r.Notes, survey.notes(r.Choice)...)
	return r, err
}

// unusablePart is the error of a part in a line that opens with the key.
type unusablePart struct{ *backup.PartError }

// Error says why the part is probably unusable.
func (u *unusablePart) Error() string {
	if errors.Is(u.Err, sealing.ErrWrongKey) {
		return u.Name + " does not open with the key, although the line does: the part is of another bank, or from before a rotation of the master key"
	}
	return u.PartError.Error() + "; the part was cut off, exchanged or changed"
}

func restoreParts(ctx context.Context, t Target, key Key, parts []part, to inspect.Source) (backup.Restored, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return backup.RestoreParts(ctx, fetch(ctx, t, key, parts), to)
}

// KeyOfMaster returns the key for a master key.
func KeyOfMaster(text string) (Key, error) {
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

// notes describes what a target holds beside the chosen state.
func (s *Survey) notes(c Choice) (notes []string) {
	for _, l := range s.Lines {
		switch {
		case l == c.Line:
			for _, text := range l.problems() {
				notes = append(notes, fmt.Sprintf("in %s, %s", l.ID, text))
			}
		case !l.Ours:
			notes = append(notes, fmt.Sprintf("foreign: %s does not open with the key; it is of another bank, or of another master key", l.ID))
		case len(l.parts) == 0:
			notes = append(notes, fmt.Sprintf("gap: all parts of %s are missing", l.ID))
		case l.Old:
			notes = append(notes, fmt.Sprintf("old: the chain %s of an earlier version reaches %s", l.ID, l.describe(l.Top())))
		default:
			notes = append(notes, fmt.Sprintf("another line: %s reaches %s%s", l.ID, l.describe(l.Top()), s.fork(l)))
		}
	}
	return notes
}

// problems describes what is missing in the line, and who else has written it.
func (l *Line) problems() (texts []string) {
	for _, g := range l.Gaps() {
		texts = append(texts, "gap: "+g.String())
	}
	for _, name := range l.Headless() {
		texts = append(texts, fmt.Sprintf("gap: the first part of the chain %s is missing; nothing of the chain can be restored", name))
	}
	if l.Ours && !l.Old && l.status == nil {
		texts = append(texts, lineFile+" is missing or damaged, so that parts may be missing at the end")
	}
	for _, pair := range l.Forks() {
		texts = append(texts, fmt.Sprintf("fork: two servers have written %s and %s at the same time", pair[0], pair[1]))
	}
	return texts
}

// fork says which line a line comes from, if that one continued, too.
func (s *Survey) fork(l *Line) string {
	for i := len(l.Ancestors) - 1; i >= 0; i-- {
		a := l.Ancestors[i]
		if from := s.line(a.Incarnation); from != nil {
			if given := from.reached(); l.continues(from) && a.Commits < given {
				return fmt.Sprintf("; it continues %s from commit %d, without its commits %d to %d, as backup.line says", a.Incarnation, a.Commits, a.Commits+1, given)
			} else if l.continues(from) {
				return fmt.Sprintf("; it continues %s from commit %d", a.Incarnation, a.Commits)
			}
			return fmt.Sprintf("; it was forked from %s at commit %d", a.Incarnation, a.Commits)
		}
	}
	return ""
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
