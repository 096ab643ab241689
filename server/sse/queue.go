package sse

import "sync"

// queue contains the streams with waiting frames, each once.
type queue struct {
	mu     sync.Mutex
	more   *sync.Cond
	list   []*Stream // those before next were taken
	next   int
	closed bool
}

func (q *queue) init() { q.more = sync.NewCond(&q.mu) }

// add adds streams, and wakes as many writers as these keep busy.
func (q *queue) add(streams ...*Stream) {
	if len(streams) == 0 {
		return
	}
	q.mu.Lock()
	if q.next > len(q.list)/2 { // a queue that is never empty must not grow
		kept := copy(q.list, q.list[q.next:])
		clear(q.list[kept:])
		q.list, q.next = q.list[:kept], 0
	}
	q.list = append(q.list, streams...)
	q.mu.Unlock()
	if len(streams) > streamsAtOnce {
		q.more.Broadcast()
	} else {
		q.more.Signal()
	}
}

// take waits for streams and appends up to streamsAtOnce of them to an empty slice. It returns none when the queue is closed.
func (q *queue) take(streams []*Stream) []*Stream {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.next == len(q.list) && !q.closed {
		q.more.Wait()
	}
	if q.closed {
		return nil
	}
	n := min(streamsAtOnce, len(q.list)-q.next)
	taken := q.list[q.next : q.next+n]
	streams = append(streams, taken...)
	clear(taken)
	if q.next += n; q.next == len(q.list) {
		const keep = 1 << 12 // entries
		if q.next = 0; cap(q.list) > keep {
			q.list = nil
		}
		q.list = q.list[:0]
	}
	return streams
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.more.Broadcast()
}
