package changes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"

	"kontor/modules/kit/change"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	// scanStep is the number of entries that one statement reads, and that are checked at once.
	scanStep = 500
	// maxScanned bounds the entries that one page looks at. A reader who may see few of them gets an empty page and a cursor that
	// has moved.
	maxScanned = 10 * scanStep
)

// Query selects events.
type Query struct {
	After  change.Position
	Types  []string // types, or patterns such as customers.*; empty: all
	Limit  int
	Record bool // with the records
}

// Batch is a page of events.
type Batch struct {
	Events []change.Event
	Last   change.Position // of the last entry that was looked at: continue after it
	More   bool            // there are entries after Last
}

// entry is an audit entry, as far as events need it.
type entry struct {
	position change.Position
	event    change.Event
	from     *source // nil: no event
}

const selectEntries = `
	SELECT seq, at, actor, action, rec_type, rec_id, before_hash, after_hash, hash, kind
	FROM audit_trail
	WHERE seq > $1 AND seq <= $2
	ORDER BY seq
	LIMIT $3`

// After returns the events after a position that the caller of the context may read, in the order of their commits. It returns
// apierr.CursorExpired.
func (s *Service) After(ctx context.Context, q Query) (Batch, error) {
	end, err := s.end(ctx)
	if err != nil {
		return Batch{}, err
	}
	if err := s.checkCursor(ctx, q.After, end); err != nil {
		return Batch{}, err
	}
	b := Batch{Events: []change.Event{}, Last: q.After}
	for scanned := 0; scanned < maxScanned && len(b.Events) < q.Limit; {
		entries, err := s.read(ctx, b.Last.Seq, end)
		if err != nil {
			return b, err
		}
		if err := s.take(ctx, &b, entries, q); err != nil {
			return b, err
		}
		if scanned += len(entries); len(entries) < scanStep {
			break
		}
	}
	b.More = b.Last.Seq < end
	if q.Record {
		err = s.addRecords(ctx, b.Events)
	}
	return b, err
}

// end returns the number of the last entry that readers may see. In one process, readers see commits before they are durable:
// events of a commit that a power failure undoes would be of changes that never happened. On a shared database, a commit is durable
// before any reader sees it.
func (s *Service) end(ctx context.Context) (end int64, err error) {
	if !s.db.Shared() {
		return s.durable.Load(), nil
	}
	if err = s.db.QueryRow(ctx, selectLast).Scan(&end); err != nil {
		return 0, fmt.Errorf("read the end of the audit trail: %w", err)
	}
	return end, nil
}

func (s *Service) read(ctx context.Context, after, end int64) ([]entry, error) {
	entries, err := store.All(ctx, s.db, scanEntry, selectEntries, after, end, scanStep)
	if err != nil {
		return nil, fmt.Errorf("read the change feed: %w", err)
	}
	return entries, nil
}

func scanEntry(row store.Scanner) (entry, error) {
	var e entry
	var before, after, hash string
	var kind *string
	v := &e.event
	err := row.Scan(&v.Version, &v.Timestamp, &v.Actor, &v.Action, &v.RecType, &v.RecID, &before, &after, &hash, &kind)
	if err != nil {
		return e, err
	}
	if e.position, err = change.PositionOf(v.Version, hash); err != nil {
		return e, err
	}
	v.ID = e.position.ID()
	if kind != nil {
		return e, nil // a security event
	}
	v.Type, e.from, _ = classify(v.RecType, v.Action, before != "", after != "")
	return e, nil
}

// take adds the visible events of entries until the batch is full, and moves it to the last entry that it has looked at.
func (s *Service) take(ctx context.Context, b *Batch, entries []entry, q Query) error {
	wanted := make([]*entry, 0, len(entries))
	for i := range entries {
		if e := &entries[i]; e.from != nil && matches(q.Types, e.event.Type) {
			wanted = append(wanted, e)
		}
	}
	visible, err := s.visible(ctx, wanted)
	if err != nil {
		return err
	}
	for i := range entries {
		if len(b.Events) == q.Limit {
			return nil
		}
		e := &entries[i]
		b.Last = e.position
		if visible[e] {
			b.Events = append(b.Events, e.event)
		}
	}
	return nil
}

const selectEntry = `SELECT hash, at FROM audit_trail WHERE seq = $1`

// checkCursor returns apierr.CursorExpired for a position of another copy of the database, such as one from before a restore,
// and for one after which events are no longer kept.
func (s *Service) checkCursor(ctx context.Context, p change.Position, end int64) error {
	if p.Seq > 0 {
		known, _, err := s.positionAt(ctx, p.Seq)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err != nil || known != p || p.Seq > end {
			return apierr.CursorExpired.Detail("reason", "unknown")
		}
	}
	if s.options.Retention == 0 || p.Seq >= end {
		return nil
	}
	_, at, err := s.positionAt(ctx, p.Seq+1)
	if err != nil {
		return err
	}
	if at < s.kept() {
		return apierr.CursorExpired.Detail("reason", "retention")
	}
	return nil
}

// kept returns the time since which events are kept.
func (s *Service) kept() store.Time {
	if s.options.Retention == 0 {
		return 0
	}
	return s.db.Now().Add(-s.options.Retention)
}

func (s *Service) positionAt(ctx context.Context, seq int64) (p change.Position, at store.Time, err error) {
	var hash string
	if err = s.db.QueryRow(ctx, selectEntry, seq).Scan(&hash, &at); err != nil {
		return p, 0, err
	}
	p, err = change.PositionOf(seq, hash)
	return p, at, err
}

// Latest returns the position of the newest event.
func (s *Service) Latest(ctx context.Context) (change.Position, error) {
	end, err := s.end(ctx)
	if err != nil || end == 0 {
		return change.Position{}, err
	}
	p, _, err := s.positionAt(ctx, end)
	return p, err
}

// Earliest returns the position before the first event that is kept.
func (s *Service) Earliest(ctx context.Context) (change.Position, error) {
	return s.Before(ctx, s.kept())
}

// Before returns the position of the last entry before a time, or the earliest position.
func (s *Service) Before(ctx context.Context, at store.Time) (change.Position, error) {
	end, err := s.end(ctx)
	if at = max(at, s.kept()); err != nil || at == 0 || end == 0 {
		return change.Position{}, err
	}
	// Numbers have no gaps, and times grow with them, but for a clock that was set back.
	first := sort.Search(int(end), func(i int) bool {
		if err != nil {
			return true
		}
		var found store.Time
		_, found, err = s.positionAt(ctx, int64(i)+1)
		return found >= at
	})
	if err != nil || first == 0 {
		return change.Position{}, err
	}
	p, _, err := s.positionAt(ctx, int64(first))
	return p, err
}

// visible returns the entries whose records the caller of the context may read now. It names the records of parts. It needs a few
// statements for each type of record, and none for a caller who may read all records of it.
func (s *Service) visible(ctx context.Context, entries []*entry) (map[*entry]bool, error) {
	caller := access.From(ctx)
	allowed := make(map[*entry]bool, len(entries))
	byType := map[*source][]*entry{}
	for _, e := range entries {
		if s.mayCall(caller, e.from.Get) {
			byType[e.from] = append(byType[e.from], e)
		}
	}
	for from, of := range byType {
		known, err := s.nameRecords(ctx, from, of)
		if err != nil {
			return nil, err
		}
		if err := s.addReadable(ctx, caller, from, known, allowed); err != nil {
			return nil, err
		}
	}
	return allowed, nil
}

// mayCall reports whether the caller has the grant on an endpoint, and their token its scope.
func (s *Service) mayCall(caller *access.Caller, key string) bool {
	return caller.MayCall(key) && caller.InScope(s.names[key])
}

// nameRecords replaces the ids of parts by those of their records, and returns the entries whose record exists.
func (s *Service) nameRecords(ctx context.Context, from *source, entries []*entry) ([]*entry, error) {
	parents := s.parents[from.RecType]
	for _, e := range entries {
		e.event.RecType = from.Of.Name
	}
	if parents == nil {
		return entries, nil
	}
	found, err := parents(ctx, s.db, ids(entries))
	if err != nil {
		return nil, fmt.Errorf("find the records of %s: %w", from.RecType, err)
	}
	known := entries[:0]
	for _, e := range entries {
		if id, ok := found[e.event.RecID]; ok {
			e.event.RecID = id
			known = append(known, e)
		}
	}
	return known, nil
}

// ids returns the ids of the records of entries, each once.
func ids(entries []*entry) []string {
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.event.RecID
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *Service) addReadable(ctx context.Context, caller *access.Caller, from *source, entries []*entry, allowed map[*entry]bool) error {
	if from.Decided {
		readable, err := s.deciders[from.Of.Name](ctx, ids(entries))
		if err != nil {
			return fmt.Errorf("check the access to %s: %w", from.Of, err)
		}
		for _, e := range entries {
			allowed[e] = readable[e.event.RecID]
		}
		return nil
	}
	if caller.May(from.Of, access.Read) {
		for _, e := range entries {
			allowed[e] = true
		}
		return nil
	}
	if from.ByType || len(entries) == 0 {
		return nil
	}
	readable, err := s.rights.Readable(ctx, caller, from.Of, ids(entries))
	if err != nil {
		return fmt.Errorf("check the access to %s: %w", from.Of, err)
	}
	for _, e := range entries {
		allowed[e] = readable[e.event.RecID]
	}
	return nil
}

// MayRead reports whether the caller of the context may read the record of an event now.
func (s *Service) MayRead(ctx context.Context, e change.Event) (bool, error) {
	for i := range sources {
		from := &sources[i]
		if from.Why != "" || from.Of.Name != e.RecType || !from.has(e.Type) {
			continue
		}
		one := &entry{event: e, from: from}
		if !s.mayCall(access.From(ctx), from.Get) {
			return false, nil
		}
		allowed := map[*entry]bool{}
		err := s.addReadable(ctx, access.From(ctx), from, []*entry{one}, allowed)
		return allowed[one], err
	}
	return false, nil
}

// has reports whether entries of the source become events of a type.
func (f *source) has(eventType string) bool {
	verb := eventType[min(len(f.Of.Name)+1, len(eventType)):]
	return verb == f.Part || slices.Contains(f.Verbs, verb)
}

// addRecords adds the records of events, each read once with the rights of the caller of the context.
func (s *Service) addRecords(ctx context.Context, events []change.Event) error {
	read := map[string]any{}
	for i := range events {
		e := &events[i]
		key := e.RecType + "/" + e.RecID
		if _, known := read[key]; !known {
			record, err := s.Record(ctx, *e)
			if err != nil {
				return err
			}
			read[key] = record
		}
		e.Record = read[key]
	}
	return nil
}

// Record returns the record of an event as the caller of the context would get it from its endpoint. It returns nil
// if the caller may not read it, if it no longer exists, or if its type has no endpoint for one record.
func (s *Service) Record(ctx context.Context, e change.Event) (any, error) {
	read, known := s.readers[e.RecType]
	if !known || !s.mayCall(access.From(ctx), sourceOf[e.RecType].Get) {
		return nil, nil //nolint:nilnil // no record
	}
	record, err := read(ctx, e.RecID)
	if err == nil {
		return record, nil
	}
	if status := apierr.Of(err).Status; status == http.StatusNotFound || status == http.StatusForbidden {
		return nil, nil //nolint:nilnil // no record
	}
	return nil, fmt.Errorf("read the record of an event: %w", err)
}
