package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/find"
	"kontor/store"
)

const (
	// restBacklog is the number of entries up to which the follower waits for a pause of the writers, so that it does not compete with
	// them. A search catches up with as many within its patience.
	restBacklog = 5000
	// movedEntries is the number of entries without new words after which the progress is written nevertheless.
	movedEntries = 2000
)

// Follow brings the documents up to date in the background. It runs regularly, on one node, and returns at once while records are
// being written and the backlog is small.
func (s *Service) Follow(ctx context.Context) error {
	var end int64
	if err := s.db.QueryRow(ctx, selectEnd).Scan(&end); err != nil {
		return err
	}
	along, _, known, err := store.ReadTextProgress(ctx, s.db)
	if err != nil {
		return err
	}
	paused := end == s.lastEnd
	s.lastEnd = end
	if known && !paused && end-along.Seq < restBacklog {
		return nil
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	for {
		done, err := s.step(ctx)
		if done || err != nil {
			return err
		}
	}
}

func (s *Service) take(ctx context.Context) error {
	select {
	case s.catching <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Service) give() { <-s.catching }

// catchUp adds what was committed before the call to the documents, for as long as a search waits. complete reports whether that was
// enough.
func (s *Service) catchUp(ctx context.Context) (complete bool, err error) {
	ready, err := s.ready(ctx)
	if ready || err != nil {
		return ready, err
	}
	waiting, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		if err := s.take(waiting); err != nil {
			return false, ctx.Err()
		}
		// A step must not depend on whether the client waits, nor belong to its request.
		done, err := s.step(context.WithoutCancel(stripped{waiting}))
		s.give()
		if done || err != nil {
			return done, err
		}
		if waiting.Err() != nil {
			return false, ctx.Err()
		}
	}
}

// stripped is a context without the values of a request: an idempotency key or a caller must not apply to the index.
type stripped struct{ context.Context }

// Value returns nil.
func (stripped) Value(any) any { return nil }

// ready reports whether there is nothing to add. It needs two short statements.
func (s *Service) ready(ctx context.Context) (bool, error) {
	if !s.tryTake() {
		return false, nil
	}
	defer s.give()
	var ready bool
	err := s.db.View(ctx, func(v *store.View) error {
		along, sources, known, err := store.ReadTextProgress(ctx, v)
		if err != nil || !known || s.unread(sources) != nil {
			return err
		}
		entries, err := s.entries(ctx, v, max(along.Seq, s.seen))
		ready = err == nil && len(entries) == 0
		return err
	})
	return ready, err
}

func (s *Service) tryTake() bool {
	select {
	case s.catching <- struct{}{}:
		return true
	default:
		return false
	}
}

// unread returns the next source that was not read to its end, or nil.
func (s *Service) unread(sources map[string]store.TextProgress) *find.Source {
	for i := range s.sources {
		if !sources[s.sources[i].From].Done {
			return &s.sources[i]
		}
	}
	return nil
}

// step adds the next batch to the documents. done reports that nothing was left.
func (s *Service) step(ctx context.Context) (done bool, err error) {
	var b batch
	err = s.db.View(ctx, func(v *store.View) error {
		b, err = s.read(ctx, v)
		return err
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("read records for the search: %w", err)
	case b.begin:
		err = s.db.InTx(ctx, func(tx *store.Tx) error { return tx.BeginTexts(ctx, b.end) })
		return false, err
	case !b.mustWrite():
		s.seen = max(s.seen, b.after.Seq)
		return b.last, nil
	}
	moved := false
	err = s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		moved, err = tx.AdvanceTexts(ctx, b.along, b.before, b.after, b.changes)
		return err
	})
	return err == nil && moved && b.last, err
}

// batch is what one transaction adds to the documents.
type batch struct {
	begin         bool // there are no documents yet: they follow the trail from its end
	end           int64
	along         store.TextProgress
	before, after store.TextProgress
	changes       []store.TextChange
	entries       int
	last          bool // nothing is left afterwards
}

func (b *batch) mustWrite() bool {
	return b.before.Name != "" || b.after.Seq-b.before.Seq > movedEntries || slices.ContainsFunc(b.changes, func(c store.TextChange) bool { return !c.Empty() })
}

const (
	selectEnd = `SELECT COALESCE(MAX(seq), 0) FROM audit_trail`

	selectChanged = `SELECT seq, rec_type, rec_id FROM audit_trail WHERE seq > $1 AND rec_type IN (%s) ORDER BY seq LIMIT $2`
)

// read reads the next batch in one state of the database.
func (s *Service) read(ctx context.Context, v *store.View) (b batch, err error) {
	if err := v.QueryRow(ctx, selectEnd).Scan(&b.end); err != nil {
		return b, err
	}
	along, sources, known, err := store.ReadTextProgress(ctx, v)
	if b.begin = !known; b.begin || err != nil {
		return b, err
	}
	b.along = along
	if source := s.unread(sources); source != nil {
		b.before = sources[source.From]
		b.before.Name = source.From
		return b, s.readSource(ctx, v, source, &b)
	}
	b.before, b.after = along, along
	return b, s.readTrail(ctx, v, &b)
}

// readSource reads records that were never read.
func (s *Service) readSource(ctx context.Context, v *store.View, source *find.Source, b *batch) error {
	ids, err := store.All(ctx, v, store.Text, source.IDs(), b.before.Position, find.Batch)
	if err != nil {
		return err
	}
	b.after = b.before
	b.after.Done = len(ids) < find.Batch
	if len(ids) == 0 {
		return nil
	}
	b.after.Position = ids[len(ids)-1]
	return s.compare(ctx, v, source, ids, b)
}

// entry is an audit entry about a record with documents.
type entry struct {
	seq        int64
	source, id string
}

func (s *Service) entries(ctx context.Context, q store.Querier, after int64) ([]entry, error) {
	names := make([]string, len(s.sources))
	for i := range s.sources {
		names[i] = s.sources[i].From
	}
	text := strings.Replace(selectChanged, "%s", store.In(3, len(names)), 1)
	return store.All(ctx, q, func(row store.Scanner) (e entry, err error) {
		err = row.Scan(&e.seq, &e.source, &e.id)
		return e, err
	}, text, store.AppendIn([]any{after, find.Batch}, names)...)
}

// readTrail reads records that were changed.
func (s *Service) readTrail(ctx context.Context, v *store.View, b *batch) error {
	entries, err := s.entries(ctx, v, max(b.along.Seq, s.seen))
	if err != nil {
		return err
	}
	b.entries = len(entries)
	if b.last = len(entries) < find.Batch; b.last {
		b.after.Seq = b.end
	} else {
		b.after.Seq = entries[len(entries)-1].seq
	}
	for i := range s.sources {
		var ids []string
		for _, e := range entries {
			if e.source == s.sources[i].From && !slices.Contains(ids, e.id) {
				ids = append(ids, e.id)
			}
		}
		if len(ids) > 0 {
			if err := s.compare(ctx, v, &s.sources[i], ids, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare adds the differences between the documents of ids and the records.
func (s *Service) compare(ctx context.Context, v *store.View, source *find.Source, ids []string, b *batch) error {
	documents, err := source.Read(ctx, v, ids)
	if err != nil {
		return err
	}
	change, err := store.CompareTexts(ctx, v, source.From, ids, documents)
	b.changes = append(b.changes, change)
	return err
}
