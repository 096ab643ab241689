package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/sealing"
	"kontor/store/sqlite"
	"kontor/store/storetest"
)

const insertLongRole = `INSERT INTO roles (id, name, name_key, description, created_at, created_by, modified_at, modified_by)
	VALUES ($1, $1, $1, $2, 1, $3, 1, $3)`

// replica is a database file that is built from recordings.
type replica struct {
	file *os.File
	keys *sealing.Keys
}

func newReplica(t *testing.T, db *store.DB) *replica {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(db.Dir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := sealing.ParseMasterKey(string(text))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealing.New(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "kontor.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &replica{file: file, keys: keys}
}

// apply writes the pages of a recording, and returns how many audit entries the replica has then. The whole replica is checked.
func (r *replica) apply(t *testing.T, taken *sqlite.Recording, all bool) int64 {
	t.Helper()
	numbers := taken.Changed
	if all {
		numbers = nil
		for n := range taken.All() {
			numbers = append(numbers, n)
		}
	}
	err := taken.EachPage(t.Context(), func(yield func(int64) bool) {
		for _, n := range numbers {
			if n <= taken.Pages && !yield(n) {
				return
			}
		}
	}, func(n int64, page []byte) error {
		_, err := r.file.WriteAt(page, (n-1)*taken.PageSize)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.file.Truncate(taken.Bytes()); err != nil {
		t.Fatal(err)
	}
	report, err := inspect.CheckFile(t.Context(), r.file.Name(), r.keys, nil)
	if err != nil {
		t.Fatalf("the replica is not a whole state: %v", err)
	}
	return report.AuditEntries
}

// Each recording, applied to the ones before it, is a whole state, whatever is written meanwhile.
func TestRecorder_EachRecordingIsAWholeState(t *testing.T) {
	db := openDir(t, storetest.Dir(t))
	recorder, err := db.Record()
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	r := newReplica(t, db)

	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%d-%d", w, random.IntN(200))
				err := db.InTx(t.Context(), func(tx *store.Tx) error {
					if _, err := tx.Exec(t.Context(), "DELETE FROM roles WHERE id = $1", id); err != nil {
						return err
					}
					if random.IntN(3) > 0 {
						text := fmt.Sprintf("%0*d", random.IntN(9000), i)
						if _, err := tx.Exec(t.Context(), insertLongRole, id, text, store.NilID); err != nil {
							return err
						}
					}
					tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "test", RecType: "roles", RecID: id})
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var before int64
	for i := range 25 {
		taken, err := recorder.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entries := r.apply(t, taken, i == 0)
		if entries < before {
			t.Errorf("recording %d has %d audit entries after %d", i, entries, before)
		}
		before = entries
		if i%5 != 3 { // pages of a recording that was not kept come again with the next one
			taken.Keep()
		}
		if err := taken.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	writers.Wait()
	taken, err := recorder.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.apply(t, taken, false)
	taken.Keep()
	if err := taken.Close(); err != nil || recorder.Changed() {
		t.Errorf("close %v, changed without a write: %v", err, recorder.Changed())
	}
}
