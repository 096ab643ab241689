package notifications

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

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
		return f.service.hub.Stats().Open > 0
	}
	return f.service.hub.Connected(item.users)
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
			f.service.hub.Revoke("", func(*sse.Stream) bool { return false })
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
