package screening

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"kontor/modules/kit/names"
	"kontor/store"
)

// snapshot is the names of all lists at one time. It never changes.
type snapshot struct {
	lists   []List
	names   *names.Index
	entries []entryRef // by their number in the index
}

// entryRef is what the memory holds of an entry besides its names.
type entryRef struct {
	id   uuid.UUID
	kind names.Kind
}

// same reports whether a snapshot has the names of these lists.
func (s *snapshot) same(lists []List) bool {
	return s != nil && slices.EqualFunc(s.lists, lists, func(a, b List) bool { return a.ID == b.ID && a.load == b.load })
}

// keeper holds the newest snapshot, and builds the next one in the background.
type keeper struct {
	mutex    sync.Mutex
	current  *snapshot     // nil: none was built, or there are no lists
	building chan struct{} // closed when the build has ended; nil: none runs
	again    bool          // the lists have changed during the build
	closed   bool
}

// background runs a function that Close waits for, unless the module is closed.
func (s *Service) background(f func()) {
	s.index.mutex.Lock()
	defer s.index.mutex.Unlock()
	if !s.index.closed {
		s.work.Go(f)
	}
}

// refresh begins to build the index in the background.
func (s *Service) refresh() {
	k := &s.index
	k.mutex.Lock()
	defer k.mutex.Unlock()
	switch {
	case k.closed:
	case k.building != nil:
		k.again = true
	default:
		k.building = make(chan struct{})
		s.work.Go(s.rebuild)
	}
}

// rebuild builds the index until the lists do not change meanwhile. After an error the former index stays; the next check tries again.
func (s *Service) rebuild() {
	k := &s.index
	for {
		built, err := s.build(s.life)
		if err != nil && s.life.Err() == nil {
			s.Log.Error("cannot build the index of the screening lists", "cause", err)
		}
		k.mutex.Lock()
		if err == nil {
			k.current = built
		}
		if !k.again || s.life.Err() != nil {
			close(k.building)
			k.building = nil
			k.mutex.Unlock()
			return
		}
		k.again = false
		k.mutex.Unlock()
	}
}

// await waits for the build that runs, if there is one, until the context ends.
func (s *Service) await(ctx context.Context) {
	s.index.mutex.Lock()
	building := s.index.building
	s.index.mutex.Unlock()
	if building == nil {
		return
	}
	select {
	case <-building:
	case <-ctx.Done():
	}
}

func (s *Service) snapshot() *snapshot {
	s.index.mutex.Lock()
	defer s.index.mutex.Unlock()
	return s.index.current
}

// build reads the lists that are in force. It returns nil without lists.
func (s *Service) build(ctx context.Context) (*snapshot, error) {
	for {
		lists, err := inForce(ctx, s.db)
		if err != nil || len(lists) == 0 {
			return nil, err
		}
		if current := s.snapshot(); current.same(lists) {
			return current, nil
		}
		built, builder := &snapshot{lists: lists}, names.NewBuilder()
		for _, l := range lists {
			if err := s.addList(ctx, built, builder, l); err != nil {
				return nil, err
			}
		}
		after, err := inForce(ctx, s.db)
		if err != nil {
			return nil, err
		}
		if built.same(after) { // otherwise entries may have been removed while they were read
			built.names = builder.Build()
			return built, nil
		}
	}
}

const (
	entriesAtOnce = 1000
	selectEntries = `
		SELECT id, entry_key, content FROM screening_entries
		WHERE list_id = $1 AND entry_key > $2 AND from_load <= $3 AND (to_load IS NULL OR to_load > $3) ORDER BY entry_key LIMIT $4`
)

// addList adds the names of a list, reading a bounded number of entries at a time.
func (s *Service) addList(ctx context.Context, to *snapshot, b *names.Builder, l List) error {
	last := ""
	for n := entriesAtOnce; n == entriesAtOnce; {
		n = 0
		err := store.Each(ctx, s.db, func(row store.Scanner) (err error) {
			n++
			last, err = to.add(row, b)
			return err
		}, selectEntries, l.ID, last, l.load, entriesAtOnce)
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds the names of an entry, and returns its key.
func (s *snapshot) add(row store.Scanner, b *names.Builder) (key string, err error) {
	var id, text string
	if err := row.Scan(&id, &key, &text); err != nil {
		return "", err
	}
	var c content
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return "", err
	}
	number, err := uuid.Parse(id)
	if err != nil {
		return "", err
	}
	s.entries = append(s.entries, entryRef{number, c.Kind})
	for _, name := range c.Names {
		b.Add(len(s.entries)-1, name, c.Kind)
	}
	return key, nil
}
