package notifications

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"kontor/store"
)

const countNotices = `SELECT event, COUNT(*) FROM notices WHERE created_at >= $1 GROUP BY event ORDER BY event`

// CountSince calls use with each event of the notices since a time, and their number.
func (s *Service) CountSince(ctx context.Context, since store.Time, use func(event string, n int64)) error {
	return store.Each(ctx, s.db, func(row store.Scanner) error {
		var event string
		var n int64
		if err := row.Scan(&event, &n); err != nil {
			return err
		}
		use(event, n)
		return nil
	}, countNotices, since)
}

const (
	// sentInterval is how long ids are gathered before they are recorded.
	sentInterval = 200 * time.Millisecond
	// sentBatch is how many rows one statement updates.
	sentBatch = 64
	// sentTransaction is how many rows one transaction updates, so that other writes wait briefly.
	sentTransaction = 1024
	// maxSentIDs bounds the ids that are kept while the database rejects writes. Notifications beyond it are replayed.
	maxSentIDs = 100_000
)

// markSent is followed by the ids and a closing bracket.
const markSent = `UPDATE notifications SET sent_at = $1 WHERE sent_at IS NULL AND id IN (`

// sentRecorder records which notifications were written to a stream, after a short time and many at once. A crash before
// that makes streams repeat some of them, which is better than losing them.
type sentRecorder struct {
	db  *store.DB
	log *slog.Logger

	mu      sync.Mutex
	ids     map[string]struct{}
	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}
	running bool
}

func newSentRecorder(db *store.DB, log *slog.Logger) *sentRecorder {
	return &sentRecorder{db: db, log: log, ids: map[string]struct{}{}, wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
}

func (r *sentRecorder) add(ids []string) {
	if len(ids) == 0 {
		return
	}
	r.mu.Lock()
	for _, id := range ids {
		if len(r.ids) < maxSentIDs {
			r.ids[id] = struct{}{}
		}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *sentRecorder) start() {
	r.mu.Lock()
	r.running = true
	r.mu.Unlock()
	go r.loop()
}

// stop records the remaining ids and ends the loop.
func (r *sentRecorder) stop() {
	r.mu.Lock()
	running := r.running
	r.running = false
	r.mu.Unlock()
	if running {
		close(r.done)
		<-r.ended
	}
}

func (r *sentRecorder) loop() {
	defer close(r.ended)
	for {
		select {
		case <-r.wake:
		case <-r.done:
			r.flush()
			return
		}
		interval := time.NewTimer(sentInterval)
		select {
		case <-interval.C:
		case <-r.done:
			interval.Stop()
		}
		r.flush()
	}
}

// flush records the gathered ids. It keeps those that the database rejects for the next time.
func (r *sentRecorder) flush() {
	r.mu.Lock()
	ids := slices.Collect(maps.Keys(r.ids))
	r.ids = map[string]struct{}{}
	r.mu.Unlock()
	slices.Sort(ids) // neighbouring rows are on the same pages
	for len(ids) > 0 {
		n := min(len(ids), sentTransaction)
		if err := r.record(ids[:n]); err != nil {
			r.log.Warn("could not record which notifications were sent", "cause", err)
			r.add(ids)
			return
		}
		ids = ids[n:]
	}
}

func (r *sentRecorder) record(ids []string) error {
	ctx := context.Background()
	return r.db.InTx(ctx, func(tx *store.Tx) error {
		for part := range slices.Chunk(ids, sentBatch) {
			if _, err := tx.Exec(ctx, markSent+store.In(2, len(part))+")", store.AppendIn([]any{tx.Now()}, part)...); err != nil {
				return err
			}
		}
		return nil
	})
}
