package records

import (
	"context"
	"fmt"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// counter is a record in memory that other requests change.
type counter struct{ version int }

func (c counter) ETag() string { return fmt.Sprintf(`"v%d"`, c.version) }

// A change never overwrites one that was made while it was prepared: it is prepared again for the new state, and after
// optimisticTries in the transaction.
func TestOptimistic_NeverOverwritesAnotherChange(t *testing.T) {
	db := storetest.Open(t)
	for _, changes := range []int{0, 1, optimisticTries - 1, optimisticTries, optimisticTries + 1} {
		t.Run(fmt.Sprintf("%d changes by others", changes), func(t *testing.T) {
			now, others := counter{version: 1}, 0
			read := func(context.Context, store.Querier) (counter, error) { return now, nil }
			_, err := optimistic[counter, counter]{
				read: read, look: read,
				prepare: func(_ context.Context, q store.Querier, before counter) (counter, bool, error) {
					if _, inside := q.(*store.Tx); !inside && others < changes {
						others++
						now.version++
					}
					return before, true, nil
				},
				write: func(_ context.Context, _ *store.Tx, prepared counter) error {
					if prepared != now {
						t.Errorf("a change prepared for %v was written over %v", prepared, now)
					}
					now.version++
					return nil
				},
			}.run(t.Context(), db)
			others = min(changes, optimisticTries)
			if want := 1 + others + 1; err != nil || now.version != want {
				t.Errorf("got version %d, %v, want %d", now.version, err, want)
			}
		})
	}
}
