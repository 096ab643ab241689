package idempotency_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/storetest"
)

var claimed = store.Idempotency{Key: "k1", Caller: "user", Path: "POST /v1/roles", BodyHash: []byte("hash of the body"), Status: 201}

// createRole runs a request that creates a role and sets the answer to its repetitions.
func createRole(ctx context.Context, db *store.DB, name string) error {
	return db.InTx(ctx, func(tx *store.Tx) error {
		if err := storetest.InsertRole(ctx, tx, name); err != nil {
			return err
		}
		tx.Respond(map[string]string{"name": name})
		return nil
	})
}

// record has an ETag, like the records of the API.
type record struct {
	Name string `json:"name"`
}

func (record) ETag() string { return "v1" }

func TestIdempotency_KeepsTheETagOfARecord(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	err := db.InTx(store.WithIdempotency(ctx, claimed), func(tx *store.Tx) error {
		tx.Respond(record{Name: "a"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := db.Replay(ctx, claimed)
	if err != nil || r == nil || r.ETag != "v1" || string(r.Body) != `{"name":"a"}` {
		t.Errorf("got %+v, %v; want the tag and the body", r, err)
	}
}

func TestIdempotency_SecondRequestIsAReplay(t *testing.T) {
	clock := storetest.NewClock()
	db := storetest.OpenWith(t, clock)
	ctx := t.Context()
	if r, err := db.Replay(ctx, claimed); r != nil || err != nil {
		t.Errorf("before the request: %v, %v", r, err)
	}
	if err := createRole(store.WithIdempotency(ctx, claimed), db, "a"); err != nil {
		t.Fatal(err)
	}

	var replay *store.Replay
	if err := createRole(store.WithIdempotency(ctx, claimed), db, "b"); !errors.As(err, &replay) {
		t.Fatalf("got %v, want a replay", err)
	}
	if replay.Status != 201 || string(replay.Body) != `{"name":"a"}` || replay.BodyDiffers {
		t.Errorf("replay is %d %s, differs %v", replay.Status, replay.Body, replay.BodyDiffers)
	}
	if r, err := db.Replay(ctx, claimed); err != nil || r == nil || string(r.Body) != `{"name":"a"}` {
		t.Errorf("look from outside: %v, %v", r, err)
	}

	other := claimed
	other.BodyHash = []byte("another")
	if err := createRole(store.WithIdempotency(ctx, other), db, "b"); !errors.As(err, &replay) || !replay.BodyDiffers || replay.Body != nil {
		t.Errorf("another body: %v", err)
	}
	for _, different := range []store.Idempotency{
		{Key: "k2", Caller: claimed.Caller, Path: claimed.Path},
		{Key: claimed.Key, Caller: "another", Path: claimed.Path},
		{Key: claimed.Key, Caller: claimed.Caller, Path: "POST /v1/grants"},
	} {
		if r, err := db.Replay(ctx, different); r != nil || err != nil {
			t.Errorf("claim %v: %v, %v", different, r, err)
		}
	}
	if n := storetest.CountRoles(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestIdempotency_ExpiresAfterADay(t *testing.T) {
	clock := storetest.NewClock()
	db := storetest.OpenWith(t, clock)
	ctx := t.Context()
	if err := createRole(store.WithIdempotency(ctx, claimed), db, "a"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(24*time.Hour - time.Millisecond)
	if n, err := db.PurgeIdempotency(ctx); n != 0 || err != nil {
		t.Errorf("purged %d early, err %v", n, err)
	}
	clock.Advance(time.Millisecond)
	if err := createRole(store.WithIdempotency(ctx, claimed), db, "b"); err != nil {
		t.Errorf("after a day: %v", err)
	}
	clock.Advance(24 * time.Hour)
	if n, err := db.PurgeIdempotency(ctx); n != 1 || err != nil {
		t.Errorf("purged %d, err %v; want 1", n, err)
	}
}

func TestIdempotency_FailedRequestLeavesTheKeyFree(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	refused := errors.New("refused")
	err := db.InTx(store.WithIdempotency(ctx, claimed), func(tx *store.Tx) error {
		tx.Respond(nil)
		return refused
	})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if err := createRole(store.WithIdempotency(ctx, claimed), db, "a"); err != nil {
		t.Errorf("the key is taken: %v", err)
	}
}

func TestIdempotency_OneRequestMayWriteTwice(t *testing.T) {
	db := storetest.Open(t)
	ctx := store.WithIdempotency(t.Context(), claimed)
	if err := createRole(ctx, db, "a"); err != nil {
		t.Fatal(err)
	}
	if err := createRole(ctx, db, "b"); err != nil {
		t.Errorf("the same request's second transaction: %v", err)
	}
}

func TestIdempotency_OneOfManyConcurrentRequestsRuns(t *testing.T) {
	db := storetest.Open(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := createRole(store.WithIdempotency(t.Context(), claimed), db, store.NewID())
			var replay *store.Replay
			if err != nil && !errors.As(err, &replay) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := storetest.CountRoles(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestIdempotency_AnswerIsNotReadableInTheFile(t *testing.T) {
	if storetest.SQLiteOnly(t, "the test reads the file of the database") {
		return
	}
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	ctx := store.WithIdempotency(t.Context(), claimed)
	err := db.InTx(ctx, func(tx *store.Tx) error {
		tx.Respond([]byte(`{"key":"kontor_shown_only_once"}`))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	data, err := os.ReadFile(filepath.Join(dir, "kontor.db"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "shown_only_once") {
		t.Error("the answer lies open in the database")
	}
}
