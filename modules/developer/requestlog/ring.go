package requestlog

import "sync"

// bodyBudget bounds the bytes of all kept bodies. Older ones are dropped first.
const bodyBudget = 32 << 20

// ring holds the latest requests. Entries do not change once they are in it, except that their content is dropped.
type ring struct {
	mu      sync.Mutex
	slots   []entry // by their number; without a number: not used yet
	last    int64   // number of the latest entry
	first   int64   // number of the first entry since the start
	content int     // bytes of all content
	oldest  int64   // the entry with the smallest number that may have content
	waiting chan struct{}
}

func (r *ring) init(keep int, after int64) {
	r.slots, r.last, r.first, r.oldest = make([]entry, keep), after, after+1, after+1
}

// add numbers an entry and copies it to the place of the oldest one.
func (r *ring) add(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	e.seq = r.last
	slot := &r.slots[e.seq%int64(len(r.slots))]
	r.drop(slot)
	*slot = *e
	for r.content += e.content.size(); r.content > bodyBudget && r.oldest < r.last; r.oldest++ {
		r.drop(&r.slots[r.oldest%int64(len(r.slots))])
	}
	if r.waiting != nil {
		close(r.waiting)
		r.waiting = nil
	}
}

// drop replaces the content of an entry by none. Readers may still use the content.
func (r *ring) drop(e *entry) {
	if e.content != nil {
		r.content -= e.content.size()
		e.content = nil
	}
}

// dropContent drops the content of all entries.
func (r *ring) dropContent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.slots {
		r.drop(&r.slots[i])
	}
	r.oldest = r.last + 1
}

// after returns copies of the entries after a number, oldest first, and the number of the latest entry. gap reports that further
// ones were overwritten.
func (r *ring) after(seq int64, limit int) (found []entry, last int64, gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := max(r.first, r.last-int64(len(r.slots))+1)
	gap = seq+1 < begin
	for n := max(seq+1, begin); n <= r.last && len(found) < limit; n++ {
		found = append(found, r.slots[n%int64(len(r.slots))])
	}
	return found, r.last, gap
}

// changed returns a channel that is closed with the next entry. Take it before reading.
func (r *ring) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = make(chan struct{})
	}
	return r.waiting
}

// get returns a copy of an entry.
func (r *ring) get(seq int64) (entry, bool) {
	found, _, gap := r.after(seq-1, 1)
	if gap || len(found) == 0 || found[0].seq != seq {
		return entry{}, false
	}
	return found[0], true
}
