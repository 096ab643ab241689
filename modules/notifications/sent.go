package notifications

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kontor/store"
)

const (
	// sentPause is how long written frames are gathered before they are noted.
	sentPause = 200 * time.Millisecond
	// sentBatch is how many are noted by one statement. A shorter list is filled up.
	sentBatch = 64
	// sentTransaction is how many are noted by one transaction, so that others need not wait long.
	sentTransaction = 1024
	// maxSentMarks bounds what is gathered while the database refuses writes. What is beyond it is replayed once more.
	maxSentMarks = 100_000
)

var markSent = func() string {
	numbers := make([]string, sentBatch)
	for i := range numbers {
		numbers[i] = "$" + strconv.Itoa(i+2)
	}
	return `UPDATE notifications SET sent_at = $1 WHERE sent_at IS NULL AND id IN (` + strings.Join(numbers, ", ") + `)`
}()

// sentMarks note which copies have been written to a stream, a little later and many at once: after a crash some are
// written again, which is better than never.
type sentMarks struct {
	db  *store.DB
	log *slog.Logger

	mu      sync.Mutex
	ids     map[string]struct{}
	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}
	running bool
}

func newSentMarks(db *store.DB, log *slog.Logger) *sentMarks {
	return &sentMarks{db: db, log: log, ids: map[string]struct{}{}, wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
}

func (m *sentMarks) add(ids []string) {
	if len(ids) == 0 {
		return
	}
	m.mu.Lock()
	for _, id := range ids {
		if len(m.ids) < maxSentMarks {
			m.ids[id] = struct{}{}
		}
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *sentMarks) start() {
	m.mu.Lock()
	m.running = true
	m.mu.Unlock()
	go m.loop()
}

// stop notes what is left and ends.
func (m *sentMarks) stop() {
	m.mu.Lock()
	running := m.running
	m.running = false
	m.mu.Unlock()
	if running {
		close(m.done)
		<-m.ended
	}
}

func (m *sentMarks) loop() {
	defer close(m.ended)
	for {
		select {
		case <-m.wake:
		case <-m.done:
			m.flush()
			return
		}
		pause := time.NewTimer(sentPause)
		select {
		case <-pause.C:
		case <-m.done:
			pause.Stop()
		}
		m.flush()
	}
}

// flush notes what was gathered. What the database refuses is kept for the next time.
func (m *sentMarks) flush() {
	m.mu.Lock()
	ids := slices.Collect(maps.Keys(m.ids))
	m.ids = map[string]struct{}{}
	m.mu.Unlock()
	slices.Sort(ids) // rows that lie side by side
	for len(ids) > 0 {
		n := min(len(ids), sentTransaction)
		if err := m.note(ids[:n]); err != nil {
			m.log.Warn("sent notifications could not be noted", "cause", err)
			m.add(ids)
			return
		}
		ids = ids[n:]
	}
}

func (m *sentMarks) note(ids []string) error {
	ctx := context.Background()
	return m.db.InTx(ctx, func(tx *store.Tx) error {
		for part := range slices.Chunk(ids, sentBatch) {
			args := make([]any, 0, sentBatch+1)
			args = append(args, tx.Now())
			for i := range sentBatch {
				args = append(args, part[min(i, len(part)-1)])
			}
			if _, err := tx.Exec(ctx, markSent, args...); err != nil {
				return err
			}
		}
		return nil
	})
}
