package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// Lineage says which history of commits a database continues. A database that is restored, copied or rolled back may go another way
// than the one that it comes from, so that from its first write it is an incarnation of its own. Commits have numbers within their
// incarnation; those up to the number of an ancestor are of that ancestor.
//
// A database recognises that it is a copy by the identity of its file, which it records beside its incarnation, and that it was
// restored by the file that the restore leaves. Where the system does not identify files, the target of a continuous backup recognises
// what was copied or rolled back.
type Lineage struct {
	Incarnation string     `json:"incarnation"`
	Ancestors   []Ancestor `json:"ancestors,omitempty"` // the oldest first
	File        string     `json:"file,omitempty"`      // identity of the database file
}

// Ancestor is an incarnation that another one comes from.
type Ancestor struct {
	Incarnation string `json:"incarnation"`
	Commits     int64  `json:"commits"` // the newest commit of the ancestor that the other one has
}

const (
	incarnationLetters = 16
	// maxAncestors bounds what is recorded, where the identity of a file changes with each start.
	maxAncestors = 100
)

// NewIncarnation returns a name for an incarnation.
func NewIncarnation() string { return strings.ToLower(rand.Text()[:incarnationLetters]) }

// IsIncarnation reports whether a text may be the name of an incarnation.
func IsIncarnation(text string) bool { return incarnationName.MatchString(text) }

var incarnationName = regexp.MustCompile(`^[a-z2-7]{16}$`)

// next returns the lineage of a new incarnation that comes from this one.
func (l Lineage) next(name string, commits int64, file string) Lineage {
	ancestors := slices.Clone(l.Ancestors)
	if l.Incarnation != "" {
		ancestors = append(ancestors, Ancestor{l.Incarnation, commits})
	}
	ancestors = ancestors[max(0, len(ancestors)-maxAncestors):]
	return Lineage{Incarnation: name, Ancestors: ancestors, File: file}
}

// readLineage returns the lineage of a database at its start. saved is false for a new incarnation that is not in the database.
func readLineage(conn *binding.Conn, d *datadir.Directory, commits int64) (l Lineage, saved bool, err error) {
	var text string
	err = readRow(conn, engine.SelectMeta, []any{engine.MetaLineage}, &text)
	if err == nil {
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return l, false, fmt.Errorf("%w: the lineage cannot be read: %w", engine.ErrCorrupt, err)
		}
	} else if !errors.Is(err, engine.ErrNotFound) {
		return l, false, err
	}
	file := datadir.Identity(d.File(datadir.Database))
	_, name, isRestored := readRestored(d)
	switch {
	case isRestored && name != "" && name != l.Incarnation:
	case isRestored && name == "", l.Incarnation == "", !datadir.SameFile(file, l.File):
		name = NewIncarnation()
	default: // also if the last start could not delete the file of the restore
		return l, true, nil
	}
	return l.next(name, commits, file), false, nil
}

func (l Lineage) save(conn *binding.Conn) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return putMeta(conn, engine.MetaLineage, string(text))
}

// Fork makes the database a new incarnation, which begins with the next commit. Another database continues the present one.
func (r *Recorder) Fork(ctx context.Context) error {
	w := r.engine.writer
	former := ""
	return r.engine.Write(context.WithoutCancel(ctx), func(engine.Tx) error {
		if former == "" {
			former = w.lineage.Incarnation
		}
		if w.lineage.Incarnation == former { // the job may run more than once
			w.lineage = w.lineage.next(NewIncarnation(), w.position.commits, w.lineage.File)
		}
		w.lineageSaved = false
		return w.lineage.save(w.conn)
	})
}
