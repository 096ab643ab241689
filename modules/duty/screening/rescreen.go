package screening

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"kontor/modules/kit/hit"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	subjectsAtOnce = 200 // records that are read and compared at once
	entriesFollow  = 500 // audit entries that are read at once
	writtenAtOnce  = 25  // records whose hits one transaction writes
	newHits        = 20  // hits of one record that a comparison opens
	// movedEntries is the number of entries without a change of a hit after which the progress is written nevertheless.
	movedEntries = 2000
	// matcher counts the versions of the matcher: all records are compared again by a new one.
	matcher = 2
)

// errListsChanged is the error of a comparison with lists that are not in force any more. It could close hits of newer ones.
var errListsChanged = errors.New("screening: the lists have changed")

// progress is how far records were compared.
type progress struct {
	seq              int64
	lists            string
	source, position string // of the pass over all records; no source: it has ended
	step             int64
}

const (
	progressID     = "records"
	selectFollowed = `SELECT seq, lists, source, position, step FROM screening_progress WHERE id = $1`
	insertFollowed = `
		INSERT INTO screening_progress (id, seq, lists, source, position, step) VALUES ($1, $2, $3, $4, '', 1) ON CONFLICT (id) DO NOTHING`
	updateFollowed = `
		UPDATE screening_progress SET seq = $3, lists = $4, source = $5, position = $6, step = step + 1 WHERE id = $1 AND step = $2`
	deleteFollowed = `DELETE FROM screening_progress WHERE id = $1`

	selectTrailEnd = `SELECT COALESCE(MAX(seq), 0) FROM audit_trail`
	selectTrail    = `
		SELECT seq, rec_type, rec_id FROM audit_trail
		WHERE seq > $1 AND rec_type IN ('customers', 'personas', 'payers') AND kind IS NULL ORDER BY seq LIMIT $2`

	selectUnlisted = `SELECT ` + hitColumns + ` FROM screening_hits WHERE status IN ('open', 'pending', 'dismissed') AND settled <> 'confirmed' ORDER BY id LIMIT 100`
)

func readProgress(ctx context.Context, q store.Querier) (p progress, known bool, err error) {
	err = q.QueryRow(ctx, selectFollowed, progressID).Scan(&p.seq, &p.lists, &p.source, &p.position, &p.step)
	if errors.Is(err, store.ErrNotFound) {
		return p, false, nil
	}
	return p, err == nil, err
}

// Rescreen compares the records that were changed since the last run, and all records after a list has changed. It runs regularly on one
// node, and continues after an interruption. Changed records come first. Without lists it returns at once.
func (s *Service) Rescreen(ctx context.Context) error {
	lists, err := inForce(ctx, s.db)
	if err != nil {
		return err
	}
	if len(lists) == 0 {
		return s.forget(ctx)
	}
	current := s.newest(ctx, lists)
	for current != nil && ctx.Err() == nil {
		done, err := s.step(ctx, current)
		if errors.Is(err, errListsChanged) {
			return nil // the next run uses the new ones
		}
		if done || err != nil {
			return err
		}
	}
	return nil
}

// newest returns the index with the lists, or nil if it could not be built.
func (s *Service) newest(ctx context.Context, lists []List) *snapshot {
	current := s.snapshot()
	if !current.same(lists) {
		s.refresh()
		s.await(ctx)
		current = s.snapshot()
	}
	if !current.same(lists) {
		return nil
	}
	return current
}

// forget closes the hits after the last list was dropped.
func (s *Service) forget(ctx context.Context) error {
	if _, known, err := readProgress(ctx, s.db); err != nil || !known {
		return err
	}
	find := func(q store.Querier) ([]storedHit, error) {
		if lists, err := inForce(ctx, q); err != nil || len(lists) > 0 {
			return nil, err
		}
		return store.All(ctx, q, scanHit, selectUnlisted)
	}
	err := store.EachFound(ctx, s.db, find, func(tx *store.Tx, h storedHit) error {
		after, action, err := h.unlisted()
		if err != nil || action == "" {
			return err
		}
		return writeHit(ctx, tx, &h, after, action, "")
	})
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if lists, err := inForce(ctx, tx); err != nil || len(lists) > 0 {
			return err
		}
		return tx.Run(ctx, deleteFollowed, progressID)
	})
}

// turn is what one step compares.
type turn struct {
	before, after progress
	known         bool // there is progress
	stale         bool // the lists have changed
	idle          bool
	records       map[source][]string // ids of changed records
	pass          []subject           // records of the pass
	source        source              // of the pass
}

// step compares the next records. done reports that nothing is left, or that the lists have changed.
func (s *Service) step(ctx context.Context, current *snapshot) (done bool, err error) {
	var t turn
	err = s.db.View(ctx, func(v *store.View) error {
		t, err = s.next(ctx, v, current)
		return err
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("read records to screen: %w", err)
	case t.stale || t.idle:
		return true, nil
	case !t.known:
		return false, s.db.InTx(ctx, func(tx *store.Tx) error {
			return tx.Run(ctx, insertFollowed, progressID, t.after.seq, t.after.lists, sources[0].subject)
		})
	}
	written := t.after.lists != t.before.lists || t.after.source != t.before.source || t.after.position != t.before.position
	for of, ids := range t.records {
		subjects, err := of.read(ctx, s.db, ids)
		if err != nil {
			return false, err
		}
		changed, err := s.screen(ctx, current, of, ids, subjects)
		if err != nil {
			return false, err
		}
		written = written || changed
	}
	if len(t.pass) > 0 {
		ids := make([]string, len(t.pass))
		for i, one := range t.pass {
			ids[i] = one.id
		}
		if _, err := s.screen(ctx, current, t.source, ids, t.pass); err != nil {
			return false, err
		}
	}
	if !written && t.after.seq-t.before.seq < movedEntries {
		s.followed = t.after.seq
		return false, nil
	}
	return false, s.db.InTx(ctx, func(tx *store.Tx) error { // if another node was faster, the step is repeated there
		return tx.Run(ctx, updateFollowed, progressID, t.before.step, t.after.seq, t.after.lists, t.after.source, t.after.position)
	})
}

// next reads what to compare in one state of the database.
func (s *Service) next(ctx context.Context, v *store.View, current *snapshot) (t turn, err error) {
	lists, err := inForce(ctx, v)
	if t.stale = !current.same(lists); err != nil || t.stale {
		return t, err
	}
	if t.before, t.known, err = readProgress(ctx, v); err != nil {
		return t, err
	}
	t.after = t.before
	print := s.print(lists)
	if !t.known || t.before.lists != print {
		t.after.lists, t.after.source, t.after.position = print, sources[0].subject, ""
		if !t.known {
			err = v.QueryRow(ctx, selectTrailEnd).Scan(&t.after.seq)
		}
		return t, err
	}
	if err := s.nextChanged(ctx, v, &t); err != nil || len(t.records) > 0 {
		return t, err
	}
	if t.before.source == "" {
		t.idle = t.after.seq-t.before.seq < movedEntries
		return t, nil
	}
	return t, t.nextOfPass(ctx, v)
}

// nextChanged reads the records that were changed.
func (s *Service) nextChanged(ctx context.Context, q store.Querier, t *turn) error {
	var end int64
	if err := q.QueryRow(ctx, selectTrailEnd).Scan(&end); err != nil {
		return err
	}
	n := 0
	t.records = map[source][]string{}
	err := store.Each(ctx, q, func(row store.Scanner) error {
		n++
		var recType, id string
		if err := row.Scan(&t.after.seq, &recType, &id); err != nil {
			return err
		}
		i := slices.IndexFunc(sources, func(of source) bool { return of.recType == recType })
		if !slices.Contains(t.records[sources[i]], id) {
			t.records[sources[i]] = append(t.records[sources[i]], id)
		}
		return nil
	}, selectTrail, max(t.before.seq, s.followed), entriesFollow)
	if n < entriesFollow {
		t.after.seq = end
	}
	return err
}

// nextOfPass reads the next of all records.
func (t *turn) nextOfPass(ctx context.Context, q store.Querier) (err error) {
	at := slices.IndexFunc(sources, func(of source) bool { return of.subject == t.before.source })
	t.source = sources[at]
	if t.pass, err = t.source.next(ctx, q, t.before.position); err != nil {
		return err
	}
	switch {
	case len(t.pass) == subjectsAtOnce:
		t.after.position = t.pass[len(t.pass)-1].id
	case at+1 < len(sources):
		t.after.source, t.after.position = sources[at+1].subject, ""
	default:
		t.after.source, t.after.position = "", ""
	}
	return nil
}

// print returns a text that changes with the lists in force, and with the threshold.
func (s *Service) print(lists []List) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.threshold(), matcher)
	for _, l := range lists {
		fmt.Fprintln(&b, l.ID, l.load)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:16])
}

// screen compares records and writes the hits that change. ids are those of all records; subjects lack erased ones.
func (s *Service) screen(ctx context.Context, current *snapshot, of source, ids []string, subjects []subject) (changed bool, err error) {
	matches, err := s.matchAll(ctx, current, subjects)
	if err != nil {
		return false, err
	}
	subjectsOf := make(map[string]*subject, len(subjects))
	for i := range subjects {
		subjectsOf[subjects[i].id] = &subjects[i]
	}
	hits, err := hitsOf(ctx, s.db, of, ids)
	if err != nil {
		return false, err
	}
	var affected []string
	for _, id := range ids {
		changes, err := compareStored(ctx, s.db, subjectsOf[id], matches[id], hits[id])
		if err != nil {
			return false, err
		}
		lost, err := s.lost(ctx, s.db, hits[id])
		if err != nil {
			return false, err
		}
		if len(changes) > 0 || len(lost) > 0 {
			affected = append(affected, id)
		}
	}
	for part := range slices.Chunk(affected, writtenAtOnce) {
		err := s.inTx(ctx, func(tx *store.Tx) error {
			if lists, err := inForce(ctx, tx); err != nil || !current.same(lists) {
				return cmp.Or(err, errListsChanged)
			}
			now, err := of.read(ctx, tx, part)
			if err != nil {
				return err
			}
			hits, err := hitsOf(ctx, tx, of, part)
			if err != nil {
				return err
			}
			for _, id := range part {
				i := slices.IndexFunc(now, func(one subject) bool { return one.id == id })
				if was := subjectsOf[id]; (was == nil) != (i < 0) || was != nil && was.state != now[i].state {
					continue // it has changed meanwhile, and is compared again
				}
				if err := s.write(ctx, tx, subjectsOf[id], matches[id], hits[id]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return len(affected) > 0, nil
}

// matchAll returns the entries that records match, by the id of the record. It leaves a processor for requests, if there are several.
func (s *Service) matchAll(ctx context.Context, current *snapshot, subjects []subject) (map[string]map[string]found, error) {
	all := make([]map[string]found, len(subjects))
	problems := make([]error, len(subjects))
	next := make(chan int)
	var work sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		work.Go(func() {
			for i := range next {
				all[i], problems[i] = s.match(ctx, current, subjects[i])
			}
		})
	}
	for i := range subjects {
		next <- i
	}
	close(next)
	work.Wait()
	matches := make(map[string]map[string]found, len(subjects))
	for i, one := range subjects {
		matches[one.id] = all[i]
	}
	return matches, errors.Join(problems...)
}

// hitsOf returns the hits of records, by the id of the record.
func hitsOf(ctx context.Context, q store.Querier, of source, ids []string) (map[string][]storedHit, error) {
	all, err := store.All(ctx, q, scanHit, fmt.Sprintf(selectOfSubjects, store.In(2, len(ids))), store.AppendIn([]any{of.subject}, ids)...)
	by := map[string][]storedHit{}
	for _, h := range all {
		by[h.SubjectID] = append(by[h.SubjectID], h)
	}
	return by, err
}

// compareStored is compare with the states of the entries as they are now.
func compareStored(ctx context.Context, q store.Querier, of *subject, matches map[string]found, existing []storedHit) ([]change, error) {
	states := map[string]string{}
	var unmatched []string
	for _, h := range existing {
		if f, matched := matches[h.EntryID]; matched {
			states[h.EntryID] = f.state
		} else {
			unmatched = append(unmatched, h.EntryID)
		}
	}
	if len(unmatched) > 0 {
		entries, err := entriesOf(ctx, q, unmatched)
		if err != nil {
			return nil, err
		}
		for id, e := range entries {
			states[id] = e.state
		}
	}
	return compared{of, matches, states, q.Now()}.changes(existing)
}

// write stores what changes with the entries that a record matches now.
func (s *Service) write(ctx context.Context, tx *store.Tx, of *subject, matches map[string]found, existing []storedHit) error {
	changes, err := compareStored(ctx, tx, of, matches, existing)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := writeHit(ctx, tx, c.before, c.after, c.action, ""); err != nil {
			return err
		}
	}
	if of == nil {
		return nil
	}
	return s.escalateOf(ctx, tx, of.source, of.id)
}

// stripped is a context without the values of a request: neither its caller nor its idempotency key belong to a comparison.
type stripped struct{ context.Context }

// Value returns nil.
func (stripped) Value(any) any { return nil }

// Screen compares a customer at once, see [hit.Screening].
func (s *Service) Screen(ctx context.Context, customerID string) (state string, err error) {
	ctx = stripped{ctx}
	lists, err := inForce(ctx, s.db)
	if err != nil || len(lists) == 0 {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, indexTime)
	defer cancel()
	current := s.newest(limited, lists)
	if current == nil {
		return "", apierr.Unavailable.RetryAfter(retryTime)
	}
	of := sources[0]
	subjects, err := of.read(ctx, s.db, []string{customerID})
	if err != nil || len(subjects) == 0 {
		return "", err
	}
	_, err = s.screen(ctx, current, of, []string{customerID}, subjects)
	if errors.Is(err, errListsChanged) {
		err = apierr.Unavailable.RetryAfter(retryTime)
	}
	return subjects[0].state, err
}

// Blocking returns the hits that block a verification, see [hit.Screening].
func (s *Service) Blocking(ctx context.Context, tx *store.Tx, customerID, state string) ([]string, error) {
	if state != "" {
		now, err := sources[0].read(ctx, tx, []string{customerID})
		if err != nil {
			return nil, err
		}
		if len(now) == 0 || now[0].state != state {
			return nil, apierr.Unavailable.RetryAfter(retryTime)
		}
	}
	return store.All(ctx, tx, store.Text, selectBlocking, customerID)
}

var _ hit.Screening = (*Service)(nil)
