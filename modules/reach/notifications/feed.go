package notifications

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"kontor/server/sse"
	"kontor/store"
)

// feed passes notifications to the open streams of this node, in the order of the commits of all nodes.
//
// An event of this node brings its frames. For events of other nodes the feed reads the notifications of those recipients that
// have a stream here. A goroutine does both, one event after another, so that no frame overtakes another and the goroutine that
// receives announcements never waits for the database. On a database of one process the feed does nothing: the after-commit
// function publishes the frames itself.
type feed struct {
	service *Service
	topic   *store.Topic

	passing sync.Mutex // held while items are passed on

	mu      sync.Mutex
	waiting []feedItem
	running bool
	closed  bool
	passed  store.Time // events up to this time were passed to the streams
}

// feedItem is an event, or a loss of announcements, in the order of the commits.
type feedItem struct {
	at, to  store.Time // of the first and the last event
	publish func()     // of an event of this node; nil for those of others
	users   []string
	all     bool // any user may be a recipient
	missed  bool // announcements were lost: everything since the last event is read
}

const (
	// maxWaiting bounds the events that wait. Beyond it the notifications are read from the table, all at once.
	maxWaiting = 4096
	// feedTime is how long one read may take.
	feedTime = 5 * time.Second
	// feedPause is the time between two attempts while the database cannot be read, or while this node may not use what it
	// remembers.
	feedPause = 20 * time.Millisecond
)

func newFeed(s *Service) *feed {
	f := &feed{service: s}
	f.topic = s.db.Topic("notifications", f.receive)
	return f
}

// announce makes the frames of an event reach the streams of all nodes, after the commit.
func (f *feed) announce(tx *store.Tx, at store.Time, recipients []string, publish func()) {
	if !f.service.db.Shared() {
		tx.AfterCommit(publish)
		return
	}
	tx.Publish(f.topic, feedKey(at, recipients), func() { f.add(feedItem{at: at, to: at, publish: publish}) })
}

// receive receives the announcement of an event of another node. It does not wait for the database.
func (f *feed) receive(key string) {
	item := feedItem{missed: true}
	if at, users, all, ok := parseFeedKey(key); ok {
		item = feedItem{at: at, to: at, users: users, all: all}
	}
	f.add(item)
}

// add adds an item, unless no stream here needs it: a stream that is opened later finds the event in the table.
func (f *feed) add(item feedItem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return
	case !f.concerns(item):
		if !f.running {
			f.passed = max(f.passed, item.to)
		}
		return
	case len(f.waiting) >= maxWaiting:
		clear(f.waiting)
		f.waiting = append(f.waiting[:0], feedItem{missed: true})
	default:
		f.waiting = append(f.waiting, item)
	}
	if !f.running {
		f.running = true
		go f.run()
	}
}

// concerns reports whether an item may be for a stream of this node.
func (f *feed) concerns(item feedItem) bool {
	if item.publish != nil {
		return true
	}
	if item.all || item.missed {
		return f.service.streams.Stats().Open > 0
	}
	return f.service.streams.Connected(item.users)
}

// close ends the feed. It does not wait.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.waiting = true, nil
}

// take returns all items that wait. Without any, or after close, it reports false, and the goroutine must end.
func (f *feed) take() ([]feedItem, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.waiting) == 0 {
		f.running = false
		return nil, false
	}
	items := f.waiting
	f.waiting = nil
	return items, true
}

// run passes items on until none wait: each event of this node alone, and those of other nodes together.
func (f *feed) run() {
	for {
		items, ok := f.take()
		if !ok {
			return
		}
		for len(items) > 0 {
			n := 1
			for items[0].publish == nil && n < len(items) && items[n].publish == nil {
				n++
			}
			if !f.pass(items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}

// pass passes items on. It tries again until it succeeds, and reports false after close. Streams skip frames that a failed attempt
// has passed on already. While this node may not use what it remembers, the items wait: a session may have ended unnoticed.
func (f *feed) pass(items []feedItem) bool {
	for failing := false; ; <-time.After(feedPause) {
		f.mu.Lock()
		closed, passed := f.closed, f.passed
		f.mu.Unlock()
		if closed {
			return false
		}
		if !f.service.db.Remembers() {
			continue
		}
		passed, err := f.try(items, passed)
		if err == nil {
			f.mu.Lock()
			f.passed = max(f.passed, passed)
			f.mu.Unlock()
			return true
		}
		if !failing {
			f.service.options.Log.Warn("could not read notifications for streams; they wait", "cause", err)
		}
		failing = true
	}
}

// try makes one attempt, and returns the time up to which events were passed on. After a panic all streams end, so that their
// clients resume from the table.
func (f *feed) try(items []feedItem, passed store.Time) (to store.Time, err error) {
	f.passing.Lock()
	defer f.passing.Unlock()
	defer func() {
		if cause := recover(); cause != nil {
			f.service.options.Log.Error("panic while passing notifications to streams", "cause", cause, "stack", string(debug.Stack()))
			f.service.streams.Revoke("", func(*sse.Stream) bool { return false })
			to, err = passed, nil
		}
	}()
	if items[0].publish != nil {
		items[0].publish()
		return items[0].to, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), feedTime)
	defer cancel()
	return f.service.publishStored(ctx, mergeItems(items, passed))
}

// mergeItems returns one item for several of other nodes. After a loss it begins at the last event that was passed on.
func mergeItems(items []feedItem, passed store.Time) feedItem {
	merged := feedItem{at: items[0].at}
	for _, item := range items {
		if item.missed {
			return feedItem{at: passed, to: passed, missed: true}
		}
		merged.at, merged.to = min(merged.at, item.at), max(merged.to, item.to)
		merged.all = merged.all || item.all
		merged.users = append(merged.users, item.users...)
	}
	return merged
}

const (
	// maxKeyUsers is how many recipients a key names. All keys of a group of commits share a bounded size.
	maxKeyUsers = 16
	// anyUser stands for the recipients of an event that has more.
	anyUser = "*"
)

// feedKey returns the key with which an event is announced to other nodes: its time, so that they find it by an index, and its
// recipients, so that a node without a stream of theirs need not read it.
func feedKey(at store.Time, recipients []string) string {
	key := strconv.FormatInt(int64(at), 36)
	if len(recipients) > maxKeyUsers {
		return key + "." + anyUser
	}
	var b strings.Builder
	b.WriteString(key)
	for _, user := range recipients {
		id, err := uuid.Parse(user)
		if err != nil || id.String() != user {
			return key + "." + anyUser
		}
		b.WriteByte('.')
		b.WriteString(base64.RawURLEncoding.EncodeToString(id[:]))
	}
	return b.String()
}

// parseFeedKey reads a key. It reports false for a text that is not a key.
func parseFeedKey(key string) (at store.Time, users []string, all, ok bool) {
	parts := strings.Split(key, ".")
	moment, err := strconv.ParseInt(parts[0], 36, 64)
	if err != nil || moment < 0 || len(parts) < 2 || len(parts) > maxKeyUsers+1 {
		return 0, nil, false, false
	}
	if len(parts) == 2 && parts[1] == anyUser {
		return store.Time(moment), nil, true, true
	}
	for _, part := range parts[1:] {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return 0, nil, false, false
		}
		id, err := uuid.FromBytes(raw)
		if err != nil {
			return 0, nil, false, false
		}
		users = append(users, id.String())
	}
	return store.Time(moment), users, false, true
}

// selectNodes returns the nodes that have open streams.
const selectNodes = `SELECT DISTINCT node_id FROM open_streams`

// goneTime is how long a node must be missing from the list of nodes.
const goneTime = 1500 * time.Millisecond

// ReleaseNodes releases what nodes have left that no longer use the database: the leases of their deliveries, and the number of
// their streams. It runs every few seconds on one node. A node counts as gone when it has been missing for some time, because a new
// one may be missing from the list for a moment.
func (s *Service) ReleaseNodes(ctx context.Context) error {
	if !s.db.Shared() {
		return nil
	}
	live := liveNodes(s.db)
	streaming, err := store.All(ctx, s.db, store.Text, selectNodes)
	if err != nil {
		return fmt.Errorf("read the nodes with streams: %w", err)
	}
	sending, err := s.deliveries.Owners(ctx)
	if err != nil {
		return fmt.Errorf("read the nodes with leases: %w", err)
	}
	var gone []string
	missing := map[string]time.Time{}
	for _, node := range append(streaming, sending...) {
		if slices.Contains(live, node) || slices.Contains(gone, node) {
			continue
		}
		since, already := s.missing[node]
		if !already {
			since = time.Now()
		}
		if missing[node] = since; time.Since(since) >= goneTime {
			gone = append(gone, node)
		}
	}
	s.missing = missing
	if len(gone) == 0 {
		return nil
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.deliveries.Release(ctx, tx, gone); err != nil {
			return err
		}
		return tx.Run(ctx, deleteStreamsOfNodes+store.In(1, len(gone))+")", store.AppendIn(nil, gone)...)
	})
	if err != nil {
		return fmt.Errorf("release the leases of nodes: %w", err)
	}
	s.options.Log.Warn("released the deliveries and streams of nodes that are gone", "nodes", gone)
	return nil
}
