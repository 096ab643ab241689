package continuous

import (
	"context"
	"errors"
	"fmt"

	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/sealing"
)

// Restored says what was restored.
type Restored struct {
	Choice
	inspect.Report
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
		w.Now = to.Now()
	}
	for damaged := map[string]bool{}; ; {
		if r.Choice, err = survey.choose(w, damaged); err != nil {
			return r, err
		}
		r.Report, err = restoreParts(ctx, t, key, r.parts, to)
		var bad *backup.PartError
		if !errors.As(err, &bad) || !isDamaged(err) {
			break
		}
		if !w.AllowGap {
			return r, fmt.Errorf("%w; --allow-gap restores the newest complete state before it", err)
		}
		damaged[bad.Name] = true
		r.Notes = append(r.Notes, bad.Error())
	}
	r.Notes = append(r.Notes, survey.notes(r.Choice)...)
	return r, err
}

func restoreParts(ctx context.Context, t Target, key Key, parts []part, to inspect.Source) (inspect.Report, error) {
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
			for _, g := range l.Gaps() {
				notes = append(notes, fmt.Sprintf("gap: in %s, %s", l.ID, g))
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

// fork says which line a line comes from, if that one went on.
func (s *Survey) fork(l *Line) string {
	for i := len(l.Ancestors) - 1; i >= 0; i-- {
		a := l.Ancestors[i]
		if from := s.line(a.Incarnation); from != nil {
			if l.continues(from) {
				return fmt.Sprintf("; it continues %s from commit %d", a.Incarnation, a.Commits)
			}
			return fmt.Sprintf("; it was forked from %s at commit %d", a.Incarnation, a.Commits)
		}
	}
	return ""
}
